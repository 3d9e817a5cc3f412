// The size of a JPEG or PNG image and the memory that decoding it takes, from its first bytes.
#pragma once

#include <cstdint>
#include <span>

namespace convoy::data {

struct ImageHeader {
  enum class Format : std::uint8_t { other, jpeg, png };
  Format format = Format::other;
  std::int64_t width = 0, height = 0;  // 0 if the header is damaged
  // libjpeg keeps all coefficients of a progressive image, libpng all pixels of an interlaced one.
  std::int64_t decoder_bytes = 0;
  std::int64_t coefficient_bytes = 0;  // of a JPEG image
};

ImageHeader read_image_header(std::span<const std::uint8_t> file);

}  // namespace convoy::data
