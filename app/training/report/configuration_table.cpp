#include "app/training/report/configuration_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "comm/placement/topology.h"

namespace convoy::app {
namespace {

constexpr std::size_t kJoinMoreThan = 16;  // ranks

// Characters, not bytes: continuation bytes of UTF-8 take no column.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string padded(const std::string& text, std::size_t width) {
  const std::size_t used = width_of(text);
  return text + std::string(width > used ? width - used : 0, ' ');
}

// At spaces, into lines of at most `width`; words that are longer stay whole.
std::vector<std::string> wrap(const std::string& text, std::size_t width) {
  std::vector<std::string> lines{""};
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (!lines.back().empty() && width_of(lines.back()) + 1 + width_of(word) > width) lines.emplace_back();
    lines.back() += lines.back().empty() ? word : " " + word;
    begin = end + 1;
  }
  return lines;
}

bool alike(const RankPlace& a, const RankPlace& b) {
  return a.host == b.host && a.device == b.device && a.cores.size() == b.cores.size();
}

}  // namespace

std::string with_thousands(std::int64_t number) {
  std::string text = std::to_string(number);
  const std::size_t first_digit = number < 0 ? 1 : 0;
  for (std::size_t at = text.size(); at > first_digit + 3;) text.insert(at -= 3, 1, ',');
  return text;
}

std::string format_bytes(std::uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; value >= 1023.995 && unit + 1 < std::size(kUnits); value /= 1024) ++unit;
  return fmt::format("{:.2f} {}", value, kUnits[unit]);
}

void ConfigurationTable::section(std::string title) { sections_.push_back({std::move(title), {}}); }

void ConfigurationTable::row(std::string name, std::string value) {
  if (sections_.empty()) throw std::invalid_argument("a row of a configuration table needs a section");
  sections_.back().rows.emplace_back(std::move(name), std::move(value));
}

void ConfigurationTable::ranks(const std::vector<RankPlace>& places) {
  const bool join = places.size() > kJoinMoreThan;
  for (std::size_t begin = 0; begin < places.size();) {
    std::size_t end = begin + 1;
    while (join && end < places.size() && alike(places[begin], places[end])) ++end;
    const auto& place = places[begin];
    if (end - begin > 1) {
      row(fmt::format("ranks {}-{}", begin, end - 1),
          fmt::format("{}, {}, {} cores each", place.host, place.device, place.cores.size()));
    } else {
      row(fmt::format("rank {}", begin),
          fmt::format("{}, {}, cores {}", place.host, place.device, comm::format_cores(place.cores)));
    }
    begin = end;
  }
}

std::string ConfigurationTable::render(int columns) const {
  std::size_t name_width = 0;
  for (const auto& section : sections_) {
    for (const auto& [name, value] : section.rows) name_width = std::max(name_width, width_of(name));
  }
  const std::size_t width = static_cast<std::size_t>(std::max(columns, 40));
  const std::size_t indent = name_width + 4;  // two before the name, two behind it
  const std::size_t value_width = width > indent + 20 ? width - indent : 20;
  std::string text;
  for (const auto& section : sections_) {
    text += section.title + " ";
    for (std::size_t i = width_of(section.title) + 1; i < width; ++i) text += "─";
    text += "\n";
    for (const auto& [name, value] : section.rows) {
      std::string before = "  " + padded(name, name_width) + "  ";
      for (const auto& line : wrap(value, value_width)) {
        text += before + line + "\n";
        before = std::string(indent, ' ');
      }
    }
  }
  return text;
}

}  // namespace convoy::app
