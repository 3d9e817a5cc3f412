// Bilinear resampling with antialiasing. Its results on 8-bit images have the same bits as Pillow's
// (Resample.c, BILINEAR). The filter is a triangle over the source. If the image is reduced, the
// triangle is widened by the scale. Weights are integers in units of 2^-kWeightBits. The horizontal
// pass comes first and rounds to 8 bits, then the vertical pass. Host and device use these
// functions, so that their results agree.
#pragma once

#include <cstdint>

#include "kernels/device/philox.h"
#include "kernels/device/sample_transform.h"

namespace convoy::kernels {

inline constexpr int kWeightBits = 22;
inline constexpr std::int32_t kHalfWeight = 1 << (kWeightBits - 1);

// Returns a * b. No compiler fuses this product with an addition, which would change the bits.
CONVOY_HOST_DEVICE inline double unfused_product(double a, double b) {
#if defined(__CUDA_ARCH__)
  return __dmul_rn(a, b);
#else
  double product = a * b;
#if defined(__x86_64__)
  asm("" : "+x"(product));
#elif defined(__aarch64__)
  asm("" : "+w"(product));
#else
  asm("" : "+m"(product));
#endif
  return product;
#endif
}

// Along one axis, the pixels of the source region that contribute to one output: `count` pixels
// from pixel `first` on.
struct BilinearTaps {
  std::int32_t first, count;
  double centre, inverse_support, sum;  // sum: the sum of the unnormalised weights
};

CONVOY_HOST_DEVICE inline double unnormalised_weight(const BilinearTaps& taps, std::int32_t tap) {
  const double distance =
      unfused_product(static_cast<double>(tap + taps.first) - taps.centre + 0.5, taps.inverse_support);
  const double magnitude = distance < 0 ? -distance : distance;
  return magnitude < 1 ? 1 - magnitude : 0;
}

// Returns the taps of an output, but with `sum` 0. bilinear_taps() also computes the sum.
CONVOY_HOST_DEVICE inline BilinearTaps bilinear_span(const AxisMap& axis, std::int32_t output) {
  const double support = axis.scale < 1 ? 1 : axis.scale;
  const double place = unfused_product(static_cast<double>(axis.skipped + output) + 0.5, axis.scale);
  BilinearTaps taps{};
  taps.centre = axis.start + place;
  taps.inverse_support = 1 / support;
  const auto first = static_cast<std::int32_t>(taps.centre - support + 0.5);
  const auto end = static_cast<std::int32_t>(taps.centre + support + 0.5);
  taps.first = first < 0 ? 0 : first;
  taps.count = (end > axis.extent ? axis.extent : end) - taps.first;
  // The triangle often ends exactly at the last pixel, which then has no weight.
  if (taps.count > 1 && unnormalised_weight(taps, taps.count - 1) == 0) --taps.count;
  return taps;
}

CONVOY_HOST_DEVICE inline BilinearTaps bilinear_taps(const AxisMap& axis, std::int32_t output) {
  BilinearTaps taps = bilinear_span(axis, output);
  for (std::int32_t tap = 0; tap < taps.count; ++tap) taps.sum += unnormalised_weight(taps, tap);
  return taps;
}

// Returns the weight of a tap in units of 2^-kWeightBits. The weights of an output add up to 1.
CONVOY_HOST_DEVICE inline std::int32_t bilinear_weight(const BilinearTaps& taps, std::int32_t tap) {
  const double weight = unnormalised_weight(taps, tap);
  return static_cast<std::int32_t>(0.5 + (taps.sum != 0 ? weight / taps.sum : weight) * (1 << kWeightBits));
}

// Converts a weighted sum of pixels to a pixel. The sum must include kHalfWeight, which rounds it.
// Values above 255 are possible because rounded weights may add up to a little more than 1.
CONVOY_HOST_DEVICE inline std::uint8_t rounded_pixel(std::int32_t sum) {
  const std::int32_t value = sum >> kWeightBits;
  return static_cast<std::uint8_t>(value > 255 ? 255 : value);
}

// Returns whether every output is a pixel of the source without change. Callers then need not
// compute weighted sums.
CONVOY_HOST_DEVICE inline bool is_copy(const AxisMap& axis) {
  return axis.scale == 1 && axis.start == static_cast<double>(static_cast<std::int32_t>(axis.start));
}

}  // namespace convoy::kernels
