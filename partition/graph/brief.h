// Input in messages: enough of it to be found again.
#pragma once

#include <string>
#include <string_view>

namespace convoy::partition {

// The text, or its first 80 bytes or fewer, whole characters of UTF-8, and an ellipsis.
inline std::string brief(std::string_view text) {
  constexpr std::size_t kMost = 80;
  if (text.size() <= kMost) return std::string(text);
  std::size_t end = kMost - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end)) + "…";
}

}  // namespace convoy::partition
