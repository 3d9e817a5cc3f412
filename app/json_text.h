// Writes JSON that may contain text from users, such as paths and arguments, which need not be
// UTF-8.
#pragma once

namespace convoy::app {

// Returns the value in one line, or in lines indented by `indent` if that is not negative. Bytes
// that are not UTF-8 become U+FFFD.
template <class Json>
auto json_text(const Json& value, int indent = -1) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace convoy::app
