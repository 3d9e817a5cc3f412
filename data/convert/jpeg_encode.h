#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/image/decode.h"

namespace convoy::data {

// The number of MCUs (minimum coded units) between two restart markers (ITU-T T.81, E.1.4), which
// let a decoder skip the data around a region. Decoding a random crop of an image of 500x375 pixels
// at quality 96 takes 423, 430 and 449 us with intervals of 2, 4 and 8, and 564 us without markers.
// The markers enlarge the files by 1.0, 0.5 and 0.3 %.
inline constexpr int kRestartInterval = 4;

// Returns a baseline JPEG file of an image with 1 or 3 channels, with 4:2:0 subsampling as Pillow
// writes it. restart_interval 0 writes no restart markers. Throws std::runtime_error with the
// reason only.
std::vector<std::uint8_t> encode_jpeg_file(const Image& image, int quality, int restart_interval = 0);

// Rewrites a JPEG file with the same coefficients in one sequential scan, with a restart marker
// after every kRestartInterval MCUs and without metadata. Throws std::runtime_error if the file is
// damaged or if not all of its components fit into one scan.
std::vector<std::uint8_t> seekable_jpeg(std::span<const std::uint8_t> file);

}  // namespace convoy::data
