// Parses small JSON files, with errors that name a field.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "partition/graph/brief.h"

namespace convoy::partition {

// Calls `fail` with a message if the text is not JSON, or if it has a number beyond the range of
// double. `fail` must throw. `each` is called for every value and key (nlohmann::json::parse()).
template <typename Fail>
nlohmann::json parse_json(std::string_view text, const Fail& fail,
                          const nlohmann::json::parser_callback_t& each = nullptr) {
  using Json = nlohmann::json;
  std::string field;
  const auto follow = [&](int depth, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::key) field = value.get<std::string>();
    return !each || each(depth, event, value);
  };
  try {
    return Json::parse(text, follow);
  } catch (const Json::parse_error& error) {
    fail(fmt::format("not JSON at byte {}", error.byte));
  } catch (const Json::out_of_range&) {
    fail(fmt::format("{} is too large", field.empty() ? "a number" : brief(field)));
  }
  return {};
}

}  // namespace convoy::partition
