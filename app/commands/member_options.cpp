#include "app/commands/member_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <optional>
#include <sstream>

#include "app/commands/config_file.h"
#include "app/commands/train_flags.h"
#include "app/errors.h"
#include "app/model/zoo/zoo.h"
#include "app/training/member_keys.h"

namespace convoy::app {
namespace {

constexpr const char* kFlag = "--members";
// The key `width` is no flag of `convoy train`. It gives the network in --model another width.
constexpr const char* kWidth = "width";

[[noreturn]] void fail(const std::string& message) {
  throw UsageError(fmt::format("{}: {}", kFlag, message));
}

std::optional<std::int64_t> whole(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Appends the value, or all values if `text` is a range "a..b".
void append_values(const std::string& key, const std::string& text, std::vector<std::string>& values) {
  const auto dots = text.find("..");
  if (dots == std::string::npos) return values.push_back(text);
  const auto first = whole(text.substr(0, dots)), last = whole(text.substr(dots + 2));
  if (!first || !last || *first > *last)
    fail(fmt::format("{}: found '{}', expected two whole numbers in ascending order, such as 1..64", key,
                     text));
  if (*last - *first >= kMostMembers)
    fail(fmt::format("{}: found '{}', expected at most {} members", key, text, kMostMembers));
  for (std::int64_t value = *first; value <= *last; ++value) values.push_back(std::to_string(value));
}

struct List {
  std::string key;
  std::vector<std::string> values;
};

void check_key(const std::string& key) {
  if (key != kWidth) check_member_key(key);
}

List list_of(const std::string& text) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    fail(fmt::format("found '{}', expected KEY=VALUE,VALUE,… such as seed=1..64, or a file FILE.toml", text));
  List list{text.substr(0, equals), {}};
  check_key(list.key);
  std::istringstream parts(text.substr(equals + 1) + ",");
  for (std::string part; std::getline(parts, part, ',');) {
    if (part.empty()) fail(fmt::format("{}: found '{}', expected a value at every comma", list.key, text));
    append_values(list.key, part, list.values);
  }
  return list;
}

std::vector<List> lists_of(std::string spec) {
  for (char& c : spec)
    if (c == ';') c = ' ';
  std::vector<List> lists;
  std::istringstream words(spec);
  for (std::string word; words >> word;) {
    List list = list_of(word);
    for (const List& other : lists)
      if (other.key == list.key) fail(fmt::format("found '{}' twice, expected each key once", list.key));
    lists.push_back(std::move(list));
  }
  if (lists.empty()) fail("found no list, expected KEY=VALUE,VALUE,… such as seed=1..64");
  return lists;
}

// Returns all combinations of the lists' values. The last list varies fastest.
std::vector<ConfigRow> product(const std::vector<List>& lists) {
  std::vector<ConfigRow> rows{{}};
  for (const List& list : lists) {
    std::vector<ConfigRow> longer;
    for (const ConfigRow& row : rows)
      for (const std::string& value : list.values) {
        if (std::ssize(longer) == kMostMembers)
          fail(fmt::format("found more members than {}, expected at most so many", kMostMembers));
        longer.push_back(row);
        longer.back().emplace_back(list.key, std::vector{value});
      }
    rows = std::move(longer);
  }
  return rows;
}

// Returns the name of the network `model` with another width. `values` must be one whole number.
std::string with_width(const std::string& model, const std::vector<std::string>& values,
                       const std::string& source) {
  const auto width = values.size() == 1 ? whole(values[0]) : std::nullopt;
  if (!width || *width < 1)
    throw UsageError(
        fmt::format("{}: width: found '{}', expected a whole number from 1", source, fmt::join(values, ",")));
  try {
    return app::with_width(model, *width);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: width: {}", source, error.what()));
  }
}

TrainOptions with_values(const TrainOptions& base, const ConfigRow& row, const std::string& source) {
  TrainOptions options = base;
  CLI::App flags;
  add_train_flags(flags, options);
  const std::vector<std::string>* width = nullptr;
  for (const auto& [key, values] : row) {
    check_key(key);
    if (key == kWidth) {
      width = &values;
      continue;
    }
    const CLI::Option& option = *flags.get_option("--" + key);
    if (source == kFlag && option.get_items_expected_max() > 1)
      fail(fmt::format("'{}' takes a list of values itself, expected a TOML file with a row for each member",
                       key));
    apply_values(flags, key, values, source);
  }
  if (width != nullptr) options.model = with_width(options.model, *width, source);
  return options;
}

}  // namespace

std::vector<TrainOptions> member_options(const std::string& spec, const TrainOptions& base) {
  const bool file = spec.ends_with(".toml");
  try {
    const std::vector<ConfigRow> rows = file ? read_rows(spec, "member") : product(lists_of(spec));
    if (rows.empty()) fail(fmt::format("{}: found no [[member]], expected one for each member", spec));
    std::vector<TrainOptions> members;
    for (const ConfigRow& row : rows) members.push_back(with_values(base, row, file ? spec : kFlag));
    return members;
  } catch (const CLI::ConfigError& error) {
    throw UsageError(error.what());
  }
}

}  // namespace convoy::app
