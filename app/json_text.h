// JSON with what users say: a path or an argument need not be UTF-8.
#pragma once

namespace convoy::app {

// On one line, or indented; what is not UTF-8 comes out as U+FFFD.
template <class Json>
auto json_text(const Json& value, int indent = -1) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace convoy::app
