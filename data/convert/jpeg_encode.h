#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/image/decode.h"

namespace convoy::data {

// MCUs between restart markers (ITU-T T.81, E.1.4), so that a region is decoded without what lies
// next to it. Random crops of 500x375 pixels at quality 96 take 423, 430 and 449 us with 2, 4 and
// 8, and 564 us without markers; files grow by 1.0, 0.5 and 0.3 %.
inline constexpr int kRestartInterval = 4;

// A baseline JPEG file of an image of 1 or 3 channels, at 4:2:0 as Pillow writes it;
// restart_interval 0 writes no markers. Throws std::runtime_error with the reason alone.
std::vector<std::uint8_t> encode_jpeg_file(const Image& image, int quality, int restart_interval = 0);

// The coefficients of a JPEG file in one sequential scan with kRestartInterval, without its
// metadata. Throws std::runtime_error if the file is damaged or cannot be written so.
std::vector<std::uint8_t> seekable_jpeg(std::span<const std::uint8_t> file);

}  // namespace convoy::data
