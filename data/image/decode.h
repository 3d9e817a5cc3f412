// Decodes a whole JPEG or PNG file. Use ImageDecoder, which says what the pixels are, for many
// files or for parts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/image_set.h"

namespace convoy::data {

struct Image {
  ImageShape shape;
  std::vector<std::uint8_t> pixels;  // [H, W, C]
};

// channels: 3 (RGB) or 1 (luminance). The format is told from the content. Throws
// std::runtime_error saying what is wrong if the content is neither format, incomplete or corrupt.
Image decode_image(std::span<const std::uint8_t> content, int channels);

// Images beyond this are refused: a header of a few bytes must not ask for any amount of memory.
inline constexpr std::int64_t kLargestImagePixels = std::int64_t{1} << 28;

}  // namespace convoy::data
