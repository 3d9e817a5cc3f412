// Reads the size of a JPEG or PNG image from the start of its file, and estimates how much memory
// the decoding takes.
#pragma once

#include <cstdint>
#include <span>

namespace convoy::data {

struct ImageHeader {
  enum class Format : std::uint8_t { other, jpeg, png };
  Format format = Format::other;
  std::int64_t width = 0, height = 0;  // 0 if the header is damaged
  // Bytes that libjpeg or libpng hold during decoding: all coefficients of a JPEG image with
  // several scans, or all pixels of an interlaced PNG image. 0 for other images.
  std::int64_t decoder_bytes = 0;
  std::int64_t coefficient_bytes = 0;  // bytes of a JPEG image's DCT coefficients
};

ImageHeader read_image_header(std::span<const std::uint8_t> file);

}  // namespace convoy::data
