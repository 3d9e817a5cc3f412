// Tests reading the size of an image from the start of its file.
#include "data/convert/image_header.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

namespace convoy::data {
namespace {

std::vector<std::uint8_t> png_start(std::uint32_t width, std::uint32_t height, bool interlaced) {
  std::vector<std::uint8_t> file{0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n',
                                 0,    0,   0,   13,  'I',  'H',  'D',  'R'};
  for (const std::uint32_t extent : {width, height})
    for (int shift = 24; shift >= 0; shift -= 8) file.push_back(static_cast<std::uint8_t>(extent >> shift));
  for (const int byte : {16, 6, 0, 0, interlaced ? 1 : 0}) file.push_back(static_cast<std::uint8_t>(byte));
  return file;
}

TEST(ImageHeader, AnInterlacedPngKeepsAllPixels) {
  const ImageHeader header = read_image_header(png_start(300, 200, true));
  EXPECT_EQ(header.width, 300);
  EXPECT_EQ(header.height, 200);
  EXPECT_EQ(header.decoder_bytes, 300 * 200 * 3);
  EXPECT_EQ(read_image_header(png_start(300, 200, false)).decoder_bytes, 0);
}

// Sizes that libpng refuses must be refused here, too. Their product would overflow, and a negative
// number of bytes would pass every memory limit.
TEST(ImageHeader, APngThatLibpngRefusesHasNoSize) {
  for (const auto& [width, height] :
       {std::array{0xFFFFFFFFu, 0xFFFFFFFFu}, {1000001u, 1u}, {1u, 0x80000000u}}) {
    const ImageHeader header = read_image_header(png_start(width, height, true));
    EXPECT_EQ(header.format, ImageHeader::Format::png);
    EXPECT_EQ(header.width, 0);
    EXPECT_EQ(header.height, 0);
    EXPECT_EQ(header.decoder_bytes, 0);
  }
}

}  // namespace
}  // namespace convoy::data
