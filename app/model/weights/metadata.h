// Reads lists from the metadata that `convoy export` writes into ONNX and safetensors files.
#pragma once

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace convoy::app {

// Returns the list of texts or numbers under `key`, which is stored as JSON. Returns an empty list
// if there is none. Throws std::runtime_error that names `file` if the text is no such list.
template <typename Value>
std::vector<Value> metadata_list(const std::map<std::string, std::string>& metadata, const std::string& key,
                                 const std::string& file) {
  const auto found = metadata.find(key);
  if (found == metadata.end()) return {};
  try {
    return nlohmann::json::parse(found->second).template get<std::vector<Value>>();
  } catch (const nlohmann::json::exception&) {
    throw std::runtime_error(fmt::format("{}: its metadata '{}' are no list in JSON", file, key));
  }
}

}  // namespace convoy::app
