// Shortens input for messages.
#pragma once

#include <string>
#include <string_view>

namespace convoy::partition {

// Returns the text, or its first 80 bytes at most and an ellipsis. It never cuts a UTF-8 character.
inline std::string brief(std::string_view text) {
  constexpr std::size_t kMost = 80;
  if (text.size() <= kMost) return std::string(text);
  std::size_t end = kMost - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end)) + "…";
}

}  // namespace convoy::partition
