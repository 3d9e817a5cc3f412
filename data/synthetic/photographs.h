// Draws images with the statistics of photographs, for benchmarks. Reading and decoding them costs
// as much as for real photographs.
#pragma once

#include <cstdint>
#include <filesystem>

#include "data/image/decode.h"

namespace convoy::data {

// Draws one image, uint8 [height, width, 3], which depends only on the arguments. Discs that cover
// each other, with sizes from a power law, give edges and a 1/f spectrum ("dead leaves": Lee,
// Mumford and Huang 2001). Each disc has its own colour, shading and texture; the texture has equal
// variance in every octave. Weak sensor noise is added everywhere.
Image draw_photograph(std::int64_t height, std::int64_t width, std::uint64_t seed);

struct PhotographFolder {
  std::int64_t height = 375, width = 500;
  int quality = 96;  // quality of the JPEG files, which have 4:2:0 subsampling
  std::int64_t classes = 10, train = 2000, test = 200;
  std::uint64_t seed = 1;
  int threads = 0;  // threads that draw; 0: one per processor
};

// Writes FOLDER/train/CLASS/NUMBER.jpg and FOLDER/test/...; the folder must not exist. Throws
// std::runtime_error naming the file that cannot be written.
void write_photographs(const PhotographFolder& made, const std::filesystem::path& folder);

}  // namespace convoy::data
