// Shortens text from input files for error messages.
#pragma once

#include <string>
#include <string_view>

namespace convoy::partition {

// Returns the text, or its beginning with an ellipsis if the text is longer than 80 bytes. UTF-8
// characters are not cut.
inline std::string brief(std::string_view text) {
  constexpr std::size_t kMost = 80;
  if (text.size() <= kMost) return std::string(text);
  std::size_t end = kMost - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end)) + "…";
}

}  // namespace convoy::partition
