#include "data/class_names.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <unordered_map>

namespace convoy::data {
namespace {

bool is_text(const std::string& name) {
  try {
    nlohmann::json(name).dump();  // throws unless the name is UTF-8
    return name.find('\0') == std::string::npos;
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}

// Returns the name with each byte that is not printable ASCII as \xHH.
std::string escaped(const std::string& name) {
  std::string text;
  for (const unsigned char byte : name)
    text += byte >= 0x20 && byte < 0x7F ? std::string(1, static_cast<char>(byte))
                                        : fmt::format("\\x{:02X}", byte);
  return text;
}

}  // namespace

void require_class_names(const std::vector<std::string>& classes, const std::string& what) {
  std::unordered_map<std::string_view, std::size_t> labels;
  for (std::size_t label = 0; label < classes.size(); ++label) {
    if (!is_text(classes[label]))
      throw std::runtime_error(
          fmt::format("{}: found class '{}', expected a name in UTF-8", what, escaped(classes[label])));
    const auto [found, added] = labels.try_emplace(classes[label], label);
    if (!added)
      throw std::runtime_error(
          fmt::format("{}: found class '{}' for the labels {} and {}, expected a name "
                      "of its own for each label",
                      what, classes[label], found->second, label));
  }
}

}  // namespace convoy::data
