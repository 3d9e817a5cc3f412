// Decodes a whole JPEG or PNG file. For many files or for parts of an image use ImageDecoder. The
// header image_decoder.h defines which pixels both return.
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

// Decodes a JPEG or PNG file; the content tells the format. `channels` is 3 (RGB) or 1 (luminance).
// Throws std::runtime_error that says what is wrong if the content is in neither format, incomplete
// or corrupt.
Image decode_image(std::span<const std::uint8_t> content, int channels);

// Images with more pixels are refused, because a damaged header could otherwise request any amount
// of memory.
inline constexpr std::int64_t kLargestImagePixels = std::int64_t{1} << 28;

}  // namespace convoy::data
