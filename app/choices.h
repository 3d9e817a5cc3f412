// Converts the values of enums to the names that flags, files and messages use, and back.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace convoy::app {

template <typename Enum>
struct Choice {
  const char* name;
  Enum value;
};

// Holds the values of an enum with their names, in the order that help and messages use. Specialise
// this variable as a std::array of Choice<Enum> for every enum that has names.
template <typename Enum>
inline constexpr std::nullptr_t kChoices = nullptr;

template <typename Enum>
concept NamedChoice = std::is_enum_v<Enum> && !std::is_null_pointer_v<decltype(kChoices<Enum>)>;

template <NamedChoice Enum>
std::string name_of(Enum value) {
  for (const Choice<Enum>& choice : kChoices<Enum>)
    if (choice.value == value) return choice.name;
  throw std::invalid_argument("a value of an enum has no name");
}

template <NamedChoice Enum>
std::vector<std::string> names_of() {
  std::vector<std::string> names;
  for (const Choice<Enum>& choice : kChoices<Enum>) names.emplace_back(choice.name);
  return names;
}

// Returns the value that has this name, or nothing if no value has it.
template <NamedChoice Enum>
std::optional<Enum> find_choice(std::string_view name) {
  for (const Choice<Enum>& choice : kChoices<Enum>)
    if (choice.name == name) return choice.value;
  return std::nullopt;
}

// Holds for a type whose values can be written as a text by text() and read from it by parse().
// Flags and files use these texts. parse() throws std::invalid_argument if the text is wrong; the
// message says what was found and what was expected.
template <typename Value>
concept HasText = requires(const Value& value, const std::string& text) {
  { value.text() } -> std::same_as<std::string>;
  { Value::parse(text) } -> std::same_as<Value>;
};

}  // namespace convoy::app
