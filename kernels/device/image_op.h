// One change of an image's pixels, as Pillow makes it. The host draws its kind and its numbers;
// host and device apply it with the same bits (pixel_ops.h). Plain data.
#pragma once

#include <cstdint>

namespace convoy::kernels {

enum class ImageOpKind : std::int32_t {
  none,        // no change; also ends a list
  affine,      // output pixel (x, y) is the input pixel that `matrix` maps it to, black outside
  brightness,  // value: the factor, 1 for no change
  contrast,    // value: the factor
  saturation,  // value: the factor; no change of images of one channel
  // Value: added to the hue, 0 to 255 for a whole turn. Images of one channel do not change.
  hue,
  sharpness,     // value: the factor
  posterize,     // value: the bits that are kept, a mask below 256
  solarize,      // value: levels from it on are inverted
  autocontrast,  // stretches each channel to 0 to 255
  equalize       // makes the levels of each channel equally frequent
};

struct ImageOp {
  ImageOpKind kind = ImageOpKind::none;
  float value = 0;
  // The matrix, in units of 2^-16 pixels: the column is (m[0] x + m[1] y + m[2]) >> 16, the row
  // (m[3] x + m[4] y + m[5]) >> 16.
  std::int32_t matrix[6] = {};
  bool operator==(const ImageOp&) const = default;
};

// The largest height and width of images with operations: `matrix` counts in 31 bits.
inline constexpr int kMostImageOpExtent = 8192;

}  // namespace convoy::kernels
