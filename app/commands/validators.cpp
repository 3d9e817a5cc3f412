#include "app/commands/validators.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <stdexcept>

#include "app/suggest.h"

namespace convoy::app {
namespace {

template <typename Number>
std::optional<Number> parse(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string mismatch(const std::string& found, const std::string& expected) {
  return fmt::format("found '{}', expected {}", found, expected);
}

}  // namespace

CLI::Validator whole_number(std::int64_t low, std::int64_t high) {
  const bool bounded = high != std::numeric_limits<std::int64_t>::max();
  const std::string expected = bounded ? fmt::format("a whole number from {} to {}", low, high)
                                       : fmt::format("a whole number of at least {}", low);
  return CLI::Validator(
      [=](std::string& text) {
        const auto value = parse<std::int64_t>(text);
        // Refuses a leading zero, because CLI11's conversion would read the number as octal.
        const bool octal = text.size() > 1 && text[text[0] == '-' ? 1 : 0] == '0';
        return value && !octal && *value >= low && *value <= high ? "" : mismatch(text, expected);
      },
      "", "whole_number");
}

CLI::Validator number_in(const std::string& interval) {
  const auto comma = interval.find(',');
  if (interval.size() < 5 || comma == std::string::npos) throw std::invalid_argument("interval " + interval);
  const double low = std::stod(interval.substr(1)), high = std::stod(interval.substr(comma + 1));
  const bool low_closed = interval.front() == '[', high_closed = interval.back() == ']';
  return CLI::Validator(
      [=](std::string& text) {
        const auto value = parse<double>(text);
        const bool inside = value && std::isfinite(*value) && (low_closed ? *value >= low : *value > low) &&
                            (high_closed ? *value <= high : *value < high);
        return inside ? "" : mismatch(text, "a number in " + interval);
      },
      "", "number_in");
}

CLI::Validator one_of(std::vector<std::string> names) {
  const std::string description = fmt::format("{{{}}}", fmt::join(names, "|"));
  return CLI::Validator(
      [names = std::move(names)](std::string& text) -> std::string {
        if (std::find(names.begin(), names.end(), text) != names.end()) return "";
        const auto hint = did_you_mean(text, names);
        return mismatch(text, fmt::format("one of {}", fmt::join(names, ", "))) + hint;
      },
      description, "one_of");
}

CLI::Validator not_empty() {
  return CLI::Validator([](std::string& text) { return text.empty() ? mismatch(text, "a text") : ""; }, "",
                        "not_empty");
}

bool has_empty_place(const CLI::Option& option, const std::string& text) {
  const char comma = option.get_delimiter();
  if (comma == '\0' || text.empty()) return false;
  return text.front() == comma || text.back() == comma ||
         text.find(std::string(2, comma)) != std::string::npos;
}

std::uint64_t parse_size(const std::string& text) {
  const auto unit_at = text.find_first_not_of("0123456789.");
  const std::string unit = unit_at == std::string::npos ? "B" : text.substr(unit_at);
  const std::string number = text.substr(0, unit_at);
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  const auto found = std::find(std::begin(kUnits), std::end(kUnits), unit);
  const auto value = parse<double>(number);
  if (found == std::end(kUnits) || !value || number.front() == '.' || number.back() == '.') {
    throw std::invalid_argument(mismatch(text, "a size such as 8GiB, 512MiB, 64KiB or 4096 (bytes)"));
  }
  const double bytes = std::ldexp(*value, static_cast<int>(10 * (found - std::begin(kUnits))));
  if (bytes < 1 || bytes > 0x1p60 || bytes != std::floor(bytes)) {
    throw std::invalid_argument(mismatch(text, "a whole number of bytes from 1B to 2^60"));
  }
  return static_cast<std::uint64_t>(bytes);
}

CLI::Validator size_or_zero() {
  const CLI::Validator size = size_in_bytes();
  return CLI::Validator([size](std::string& text) { return text == "0" ? "" : size(text); }, "",
                        "size_or_zero");
}

CLI::Validator size_in_bytes() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        try {
          text = std::to_string(parse_size(text));
          return "";
        } catch (const std::invalid_argument& error) {
          return error.what();
        }
      },
      "", "size_in_bytes");
}

}  // namespace convoy::app
