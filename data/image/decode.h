// JPEG and PNG files to pixels, through libjpeg-turbo and libpng.
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

// channels: 3 (RGB; grey images are repeated) or 1 (luminance). Transparent pixels are laid over black. The
// format is told from the content, not from a name. Throws std::runtime_error saying what is wrong when the
// content is neither format or is damaged; what libjpeg only warns of (missing data) is damage here.
Image decode_image(std::span<const std::uint8_t> content, int channels);
Image decode_jpeg(std::span<const std::uint8_t> content, int channels);
Image decode_png(std::span<const std::uint8_t> content, int channels);

// Images beyond this are refused: a header of a few bytes must not ask for any amount of memory.
inline constexpr std::int64_t kLargestImagePixels = std::int64_t{1} << 28;

}  // namespace convoy::data
