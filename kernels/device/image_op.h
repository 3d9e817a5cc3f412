// One change of an image's pixels, as Pillow makes it. The host chooses the kind and the numbers at
// random. Host and device apply the change with the same bits (pixel_ops.h). Plain data.
#pragma once

#include <cstdint>

namespace convoy::kernels {

enum class ImageOpKind : std::int32_t {
  none,  // no change; also ends a list of operations
  // Moves pixels: output pixel (x, y) is the input pixel to which `matrix` maps it, or black if
  // that lies outside the image.
  affine,
  brightness,  // value: the factor, 1 for no change
  contrast,    // value: the factor, 1 for no change
  saturation,  // value: the factor; images of one channel do not change
  // value: the number added to the hue, in 1/256 of a full turn. Images of one channel do not
  // change.
  hue,
  sharpness,     // value: the factor, 1 for no change
  posterize,     // value: a mask of the bits that are kept, below 256
  solarize,      // value: levels from this one on are inverted
  autocontrast,  // stretches the levels of each channel to 0 to 255
  equalize       // makes the levels of each channel equally frequent
};

struct ImageOp {
  ImageOpKind kind = ImageOpKind::none;
  float value = 0;
  // The matrix of an affine operation, in units of 2^-16 pixels. The column of the input pixel is
  // (m[0] x + m[1] y + m[2]) >> 16; its row is (m[3] x + m[4] y + m[5]) >> 16.
  std::int32_t matrix[6] = {};
  bool operator==(const ImageOp&) const = default;
};

// The largest height and width of images with operations. Within this limit, results of `matrix`
// fit into 31 bits.
inline constexpr int kMostImageOpExtent = 8192;

}  // namespace convoy::kernels
