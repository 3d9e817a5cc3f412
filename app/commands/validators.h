// Strict checks of flag values for every verb. CLI11 wraps negative numbers around, clamps numbers
// that overflow, and reads 010 as eight. These checks refuse such values. Each fails with "found X,
// expected Y", to which CLI11 prepends the flag.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "app/choices.h"

namespace convoy::app {

CLI::Validator whole_number(std::int64_t low, std::int64_t high = std::numeric_limits<std::int64_t>::max());

// Accepts a finite number inside an interval. The interval is in mathematical notation, such as
// "[0, 1)" or "(0, inf)".
CLI::Validator number_in(const std::string& interval);

// Accepts one of the names. The message for any other word gives similar names.
CLI::Validator one_of(std::vector<std::string> names);

// Adds a flag that takes one of `names` and stores the enum value of that name in `value`. `value`
// must outlive the verb.
template <NamedChoice Enum>
CLI::Option* add_choice(CLI::App& verb, const std::string& flag, Enum& value, const std::string& help,
                        const std::vector<std::string>& names = names_of<Enum>()) {
  return verb
      .add_option_function<std::string>(
          flag, [&value](const std::string& name) { value = find_choice<Enum>(name).value(); }, help)
      ->check(one_of(names))
      ->default_str(name_of(value));
}

// Adds a flag whose value is read by Value::parse(). `value` must outlive the verb.
template <HasText Value>
CLI::Option* add_text(CLI::App& verb, const std::string& flag, Value& value, const std::string& help) {
  const auto check = [](const std::string& text) -> std::string {
    try {
      Value::parse(text);
      return "";
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
  };
  return verb
      .add_option_function<std::string>(
          flag, [&value](const std::string& text) { value = Value::parse(text); }, help)
      ->check(CLI::Validator(check, "", "text"))
      ->default_str(value.text());
}

// Accepts any text that is not empty. Without this check an empty shell variable would count as a
// file name.
CLI::Validator not_empty();

// Converts "8GiB", "1.5MiB", "4096" or "4096B" to bytes. Use it with Option::transform.
CLI::Validator size_in_bytes();
CLI::Validator size_or_zero();

// Returns whether `text`, a word given to `option`, is a list with an empty element, such as
// "2,,3". CLI11 ignores empty elements.
bool has_empty_place(const CLI::Option& option, const std::string& text);

// Returns the bytes that `text` means. Throws std::invalid_argument, whose message tells what was
// found and what was expected.
std::uint64_t parse_size(const std::string& text);

}  // namespace convoy::app
