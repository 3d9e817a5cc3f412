// Decodes a whole JPEG or PNG file. For many files, or for a part of an image, use ImageDecoder
// (image_decoder.h), which returns the same pixels.
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

// Decodes a JPEG or PNG file. The format is taken from the content. `channels` is 3 (RGB) or 1
// (luminance). Throws std::runtime_error with the reason if the content is in neither format,
// incomplete or corrupt.
Image decode_image(std::span<const std::uint8_t> content, int channels);

// The most pixels of an image. Larger images are refused, because a damaged header could otherwise
// request any amount of memory.
inline constexpr std::int64_t kLargestImagePixels = std::int64_t{1} << 28;

}  // namespace convoy::data
