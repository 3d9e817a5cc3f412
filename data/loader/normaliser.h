// Turns 8-bit images into normalised floats: value * scale + shift. The product and the sum are
// rounded separately, so that host and device (kernels/normalise) give identical bits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/image/vector_level.h"
#include "data/image_set.h"
#include "kernels/device/sample_transform.h"

namespace convoy::data {

// The layout of float images: row_major is [C, H, W], channels_last is [H, W, C].
enum class ImageLayout : std::uint8_t { row_major, channels_last };

// The factors of a channel: normalised = value * scale + shift, with a value from 0 to 255.
struct ScaleShift {
  float scale, shift;
};
// normalisation() returns the factors of (x / 255 - mean) / std, and unit_scale() those of x / 255.
// Both return one pair of factors per channel.
std::vector<ScaleShift> normalisation(std::span<const float> mean, std::span<const float> std);
std::vector<ScaleShift> unit_scale(std::int64_t channels);
// Returns for each channel the 8-bit value that is closest to 0 after normalisation. Padding has
// this colour.
std::vector<std::uint8_t> nearest_to_zero(const std::vector<ScaleShift>& factors);

class Normaliser {
 public:
  Normaliser(ImageShape shape, const std::vector<ScaleShift>& factors, ImageLayout layout,
             VectorLevel level = best_vector_level());
  // Normalises `image`, uint8 [H, W, C], to shape.bytes() floats at `to`. Pixels that the transform
  // erases become 0. Padding becomes 0, too, unless image operations may have moved it.
  void apply(const std::uint8_t* image, const kernels::SampleTransform& transform, float* to) const;

 private:
  void blank(float* to, const kernels::ErasedRectangle& rectangle) const;
  void blank_padding(float* to, const kernels::SampleTransform& transform) const;

  ImageShape shape_;
  ImageLayout layout_;
  VectorLevel level_;
  std::vector<float> scale_, shift_;  // one value per channel, repeated to fill whole vectors
};

}  // namespace convoy::data
