#include "app/suggest.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <utility>

namespace convoy::app {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

}  // namespace

int edit_distance(std::string_view left, std::string_view right) {
  const std::string a = lower(left), b = lower(right);
  std::vector<int> before(b.size() + 1), previous(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before = std::exchange(previous, row);
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int replaced = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({previous[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

std::vector<std::string> suggest(std::string_view name, const std::vector<std::string>& candidates) {
  const int limit = std::clamp(static_cast<int>(name.size() + 2) / 3, 1, 4);
  std::vector<std::pair<int, std::string>> near;
  for (const auto& candidate : candidates) {
    const bool begins = name.size() >= 3 && lower(candidate).starts_with(lower(name));
    const int distance = begins ? 1 : edit_distance(name, candidate);
    const bool all_replaced = distance >= static_cast<int>(name.size());
    if (distance <= limit && !all_replaced) near.emplace_back(distance, candidate);
  }
  std::stable_sort(near.begin(), near.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> names;
  for (const auto& entry : near) {
    if (names.size() < 3) names.push_back(entry.second);
  }
  return names;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates) {
  const auto names = suggest(name, candidates);
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += i == 0 ? "; did you mean " : i + 1 == names.size() ? " or " : ", ";
    text += fmt::format("'{}'", names[i]);
  }
  return text.empty() ? text : text + "?";
}

}  // namespace convoy::app
