// Images with the statistics of photographs, for measuring: what decoding and reading them costs is
// what real ones cost.
#pragma once

#include <cstdint>
#include <filesystem>

#include "data/image/decode.h"

namespace convoy::data {

// One image [height, width, 3]; the same for the same seed. Occluding discs whose sizes follow a
// power law ("dead leaves": Lee, Mumford and Huang 2001) give edges and a 1/f spectrum; each has
// its own colour, shading and texture of equal variance in every octave, and a little sensor noise
// lies over all.
Image draw_photograph(std::int64_t height, std::int64_t width, std::uint64_t seed);

struct PhotographFolder {
  std::int64_t height = 375, width = 500;
  int quality = 96;  // of the JPEG files, 4:2:0
  std::int64_t classes = 10, train = 2000, test = 200;
  std::uint64_t seed = 1;
  int threads = 0;  // that draw; 0: one a processor
};

// Writes FOLDER/train/CLASS/NUMBER.jpg and FOLDER/test/...; the folder must not exist. Throws
// std::runtime_error naming the file that cannot be written.
void write_photographs(const PhotographFolder& made, const std::filesystem::path& folder);

}  // namespace convoy::data
