#pragma once

#include <cstdint>

namespace convoy::data {

// A rectangle of an image, in pixels.
struct PixelRectangle {
  std::int32_t x = 0, y = 0, width = 0, height = 0;
  bool operator==(const PixelRectangle&) const = default;
};

}  // namespace convoy::data
