// Makes JPEG files of every kind: colour spaces, subsampling, progressive, restart intervals,
// arithmetic coding.
#pragma once

#include <cstdio>
#include <string>
#include <vector>
// jpeglib.h needs FILE declared before it.
#include <jpeglib.h>

#include <array>

#include "tests/data/support.h"

namespace convoy::data::testing {

// Returns an image with edges, noise and gradients, so that neighbouring blocks differ.
inline Image detailed_image(std::int64_t height, std::int64_t width, std::int64_t channels,
                            std::uint64_t seed) {
  Image image{{height, width, channels},
              random_bytes(static_cast<std::size_t>(height * width * channels), seed)};
  for (std::int64_t i = 0; i < height * width * channels; ++i) {
    const std::int64_t c = i % channels, x = i / channels % width, y = i / channels / width;
    const std::int64_t base = ((x / 7 + y / 5 + c) % 3) * 80 + (x + 2 * y) % 60;
    auto& value = image.pixels[static_cast<std::size_t>(i)];
    value = static_cast<std::uint8_t>(base + value % 32);
  }
  return image;
}

struct JpegKind {
  std::string name;
  int components = 3;  // 1 (grey), 3 (RGB) or 4 (CMYK)
  J_COLOR_SPACE stored_as = JCS_YCbCr;
  int h = 1, v = 1;  // sampling factors of the first component
  bool progressive = false, arithmetic = false, separate_scans = false, incomplete = false;
  int h2 = 1, v2 = 1;  // sampling factors of the second component
  int restart = 0;     // MCUs (minimum coded units) between restart markers; 0: no markers
  int quality = 90;
  bool optimised = false;  // Huffman tables made for this image

  bool multiple_scans() const { return progressive || separate_scans; }

  Bytes encode(const Image& image) const {
    return encode_jpeg(image, [this](jpeg_compress_struct& jpeg) { configure(jpeg); });
  }

 private:
  void configure(jpeg_compress_struct& jpeg) const {
    static constexpr std::array<jpeg_scan_info, 4> kScans{{{1, {0, 0, 0, 0}, 0, 63, 0, 0},
                                                           {1, {1, 0, 0, 0}, 0, 63, 0, 0},
                                                           {1, {2, 0, 0, 0}, 0, 63, 0, 0},
                                                           {1, {3, 0, 0, 0}, 0, 63, 0, 0}}};
    jpeg_set_colorspace(&jpeg, stored_as);
    jpeg_set_quality(&jpeg, quality, TRUE);
    jpeg.comp_info[0].h_samp_factor = h;
    jpeg.comp_info[0].v_samp_factor = v;
    if (components == 3) jpeg.comp_info[1].h_samp_factor = h2, jpeg.comp_info[1].v_samp_factor = v2;
    if (components == 4) jpeg.comp_info[3].h_samp_factor = h, jpeg.comp_info[3].v_samp_factor = v;
    jpeg.optimize_coding = optimised ? TRUE : FALSE;
    jpeg.arith_code = arithmetic ? TRUE : FALSE;
    jpeg.restart_interval = static_cast<unsigned>(restart);
    if (progressive) jpeg_simple_progression(&jpeg);
    if (incomplete) jpeg.num_scans = 4;  // without the last scans, which refine the lowest bits
    if (!separate_scans) return;
    jpeg.scan_info = kScans.data();
    jpeg.num_scans = components;
  }
};

inline std::vector<JpegKind> jpeg_kinds() {
  std::vector<JpegKind> kinds;
  const std::vector<std::pair<int, int>> sampling{{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {4, 2}, {1, 4}};
  for (const auto& [h, v] : sampling) {
    const std::string name = std::to_string(h) + "x" + std::to_string(v);
    kinds.push_back({.name = name, .h = h, .v = v});
    kinds.push_back({.name = name + " progressive", .h = h, .v = v, .progressive = true});
    kinds.push_back({.name = name + " restarts", .h = h, .v = v, .restart = 3});
  }
  kinds.push_back({.name = "progressive restarts", .h = 2, .v = 2, .progressive = true, .restart = 5});
  kinds.push_back({.name = "incomplete", .h = 2, .v = 2, .progressive = true, .incomplete = true});
  kinds.push_back({.name = "separate scans", .h = 2, .v = 2, .separate_scans = true});
  kinds.push_back({.name = "arithmetic", .h = 2, .v = 2, .arithmetic = true});
  kinds.push_back(
      {.name = "arithmetic progressive", .h = 2, .v = 1, .progressive = true, .arithmetic = true});
  // These sampling factors are legal, but no usual encoder combines them.
  kinds.push_back({.name = "mixed 2x2 1x4", .h = 2, .v = 2, .h2 = 1, .v2 = 4});
  kinds.push_back({.name = "mixed 2x2 2x1", .h = 2, .v = 2, .h2 = 2, .v2 = 1});
  kinds.push_back({.name = "mixed 2x1 4x1", .h = 2, .v = 1, .h2 = 4, .v2 = 1});
  kinds.push_back({.name = "mixed 1x1 2x2", .h = 1, .v = 1, .h2 = 2, .v2 = 2});
  kinds.push_back(
      {.name = "mixed 4x1 2x2 progressive", .h = 4, .v = 1, .progressive = true, .h2 = 2, .v2 = 2});
  kinds.push_back({.name = "finest", .h = 2, .v = 2, .quality = 100});
  kinds.push_back(
      {.name = "finest optimised", .h = 2, .v = 2, .restart = 4, .quality = 100, .optimised = true});
  kinds.push_back({.name = "coarse optimised", .quality = 20, .optimised = true});
  kinds.push_back({.name = "RGB", .stored_as = JCS_RGB});
  kinds.push_back({.name = "grey", .components = 1, .stored_as = JCS_GRAYSCALE});
  kinds.push_back({.name = "grey 2x2", .components = 1, .stored_as = JCS_GRAYSCALE, .h = 2, .v = 2});
  kinds.push_back(
      {.name = "grey progressive", .components = 1, .stored_as = JCS_GRAYSCALE, .progressive = true});
  kinds.push_back({.name = "CMYK", .components = 4, .stored_as = JCS_CMYK});
  kinds.push_back({.name = "YCCK", .components = 4, .stored_as = JCS_YCCK, .h = 2, .v = 2});
  return kinds;
}

}  // namespace convoy::data::testing
