#pragma once

#include <vector>

#include "data/image/decode.h"

namespace convoy::data {

// A baseline JPEG file of an image of 1 or 3 channels, at 4:2:0 as Pillow writes it. Throws
// std::runtime_error with the reason alone.
std::vector<std::uint8_t> encode_jpeg_file(const Image& image, int quality);

}  // namespace convoy::data
