// JSON with text of users: a path or an argument need not be UTF-8.
#pragma once

namespace convoy::app {

// Returns one line, or indented lines; bytes that are not UTF-8 become U+FFFD.
template <class Json>
auto json_text(const Json& value, int indent = -1) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace convoy::app
