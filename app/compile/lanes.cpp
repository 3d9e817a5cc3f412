#include "app/compile/lanes.h"

#include <fmt/format.h>

#include <charconv>
#include <stdexcept>

namespace convoy::app {

std::string Lanes::text() const { return count == kAutoLanes ? "auto" : std::to_string(count); }

Lanes Lanes::parse(const std::string& text) {
  if (text == "auto") return {};
  Lanes lanes;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), lanes.count);
  const bool whole = error == std::errc() && end == text.data() + text.size() && text[0] != '0';
  if (!whole || lanes.count < 1 || lanes.count > kMostLanes)
    throw std::invalid_argument(
        fmt::format("found '{}', expected auto or a whole number from 1 to {}", text, kMostLanes));
  return lanes;
}

}  // namespace convoy::app
