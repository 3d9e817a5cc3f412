// Strict checks of flag values, for every verb. CLI11's own conversions wrap negative numbers, clamp those
// that overflow and read 010 as eight; these do not. Each fails with "found X, expected Y", which CLI11 puts
// behind the flag's name.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "app/choices.h"

namespace convoy::app {

CLI::Validator whole_number(std::int64_t low, std::int64_t high = std::numeric_limits<std::int64_t>::max());

// A finite number in an interval as one writes it: "[0, 1)", "(0, inf)".
CLI::Validator number_in(const std::string& interval);

// One of the names; near misses are pointed out.
CLI::Validator one_of(std::vector<std::string> names);

// Adds a flag that takes one of `names`, the names of an enum's values. `value` must outlive the verb.
template <NamedChoice Enum>
CLI::Option* add_choice(CLI::App& verb, const std::string& flag, Enum& value, const std::string& help,
                        const std::vector<std::string>& names = names_of<Enum>()) {
  return verb
      .add_option_function<std::string>(
          flag, [&value](const std::string& name) { value = find_choice<Enum>(name).value(); }, help)
      ->check(one_of(names))
      ->default_str(name_of(value));
}

// Any text but an empty one: an empty shell variable must not pass for a file name.
CLI::Validator not_empty();

// "8GiB", "1.5MiB", "4096" (bytes), "4096B": turns the text into bytes. Use with Option::transform.
CLI::Validator size_in_bytes();

// Whether a list such as "2,,3" has a place without a value, which CLI11 passes over; `text` is one word given to `option`.
bool has_empty_place(const CLI::Option& option, const std::string& text);

// Bytes in `text`; throws std::invalid_argument saying what was found and expected.
std::uint64_t parse_size(const std::string& text);

}  // namespace convoy::app
