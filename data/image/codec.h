// The interface of the JPEG and PNG decoders. Only ImageDecoder uses it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "data/image/pixel_rectangle.h"
#include "data/image_set.h"

namespace convoy::data {

class Codec {
 public:
  virtual ~Codec() = default;
  virtual ImageShape open(std::span<const std::uint8_t> content) = 0;
  virtual void read(PixelRectangle region, int reduction, std::uint8_t* to) = 0;
};

std::unique_ptr<Codec> make_jpeg_codec(int channels);
std::unique_ptr<Codec> make_png_codec(int channels);

// Returns the luminance as Pillow's convert("L") computes it.
inline std::uint8_t grey_of(std::uint8_t red, std::uint8_t green, std::uint8_t blue) {
  return static_cast<std::uint8_t>((red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16);
}

}  // namespace convoy::data
