// CMakeLists.txt builds this file without fused multiply-add, which would change the bits.
#include "data/loader/normaliser.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace convoy::data {
namespace {

constexpr std::int64_t kLanes = 16;

#define CONVOY_INLINE inline __attribute__((always_inline))

// Converts each byte to byte * scale + shift, in memory order. `scale` and `shift` have `period`
// values each. Byte i uses value i modulo `period`, which is a multiple of kLanes.
CONVOY_INLINE void convert_bytes(const std::uint8_t* from, std::int64_t count, std::int64_t period,
                                 const float* scale, const float* shift, float* to) {
  std::int64_t begin = 0;
  for (; begin + period <= count; begin += period)
    for (std::int64_t i = 0; i < period; ++i)
      to[begin + i] = static_cast<float>(from[begin + i]) * scale[i] + shift[i];
  for (std::int64_t i = 0; begin + i < count; ++i)
    to[begin + i] = static_cast<float>(from[begin + i]) * scale[i] + shift[i];
}

// Converts interleaved pixels to one plane per channel. kChannels is the number of channels as a
// compile-time constant; if it is 0, `any_channels` is used.
template <int kChannels>
CONVOY_INLINE void convert_planes(const std::uint8_t* from, std::int64_t pixels, std::int64_t any_channels,
                                  const float* scale, const float* shift, float* to) {
  const std::int64_t channels = kChannels > 0 ? kChannels : any_channels;
  // The number of pixels per block. All channels of a block fit into the L1 cache.
  constexpr std::int64_t kBlock = 1024;
  for (std::int64_t begin = 0; begin < pixels; begin += kBlock) {
    const std::int64_t size = std::min(kBlock, pixels - begin);
    for (std::int64_t c = 0; c < channels; ++c) {
      const float factor = scale[c], term = shift[c];
      const std::uint8_t* source = from + begin * channels + c;
      float* plane = to + c * pixels + begin;
      for (std::int64_t i = 0; i < size; ++i)
        plane[i] = static_cast<float>(source[i * channels]) * factor + term;
    }
  }
}

CONVOY_INLINE void convert(const std::uint8_t* from, ImageShape shape, ImageLayout layout,
                           const std::vector<float>& scale, const std::vector<float>& shift, float* to) {
  const std::int64_t pixels = shape.height * shape.width;
  if (layout == ImageLayout::channels_last || shape.channels == 1)
    return convert_bytes(from, shape.bytes(), static_cast<std::int64_t>(scale.size()), scale.data(),
                         shift.data(), to);
  if (shape.channels == 3) return convert_planes<3>(from, pixels, 3, scale.data(), shift.data(), to);
  convert_planes<0>(from, pixels, shape.channels, scale.data(), shift.data(), to);
}

using Convert = void(const std::uint8_t*, ImageShape, ImageLayout, const std::vector<float>&,
                     const std::vector<float>&, float*);
#if CONVOY_VECTOR_LEVELS
__attribute__((target("avx2"))) void convert_avx2(const std::uint8_t* from, ImageShape shape,
                                                  ImageLayout layout, const std::vector<float>& scale,
                                                  const std::vector<float>& shift, float* to) {
  convert(from, shape, layout, scale, shift, to);
}
__attribute__((target("avx512bw,avx512vl"))) void convert_avx512(const std::uint8_t* from, ImageShape shape,
                                                                 ImageLayout layout,
                                                                 const std::vector<float>& scale,
                                                                 const std::vector<float>& shift, float* to) {
  convert(from, shape, layout, scale, shift, to);
}
#endif

Convert* convert_for(VectorLevel level, ImageLayout layout) {
#if CONVOY_VECTOR_LEVELS
  // With channels last, GCC 12's AVX-512 code of convert_bytes() was slower than its AVX2 code.
  if (level == VectorLevel::avx512 && layout == ImageLayout::row_major) return convert_avx512;
  if (level != VectorLevel::portable) return convert_avx2;
#endif
  static_cast<void>(level);
  static_cast<void>(layout);
  return convert;
}

}  // namespace

std::vector<ScaleShift> normalisation(std::span<const float> mean, std::span<const float> std) {
  if (mean.size() != std.size()) throw std::invalid_argument("normalisation: mean and std differ in size");
  std::vector<ScaleShift> factors;
  for (std::size_t c = 0; c < mean.size(); ++c) {
    const double deviation = std[c];
    factors.push_back({static_cast<float>(1 / (255 * deviation)), static_cast<float>(-mean[c] / deviation)});
  }
  return factors;
}

std::vector<ScaleShift> unit_scale(std::int64_t channels) {
  return {static_cast<std::size_t>(channels), ScaleShift{static_cast<float>(1 / 255.0), 0}};
}

std::vector<std::uint8_t> nearest_to_zero(const std::vector<ScaleShift>& factors) {
  std::vector<std::uint8_t> values;
  for (const ScaleShift& factor : factors)
    values.push_back(
        static_cast<std::uint8_t>(std::clamp(std::lround(-factor.shift / factor.scale), 0l, 255l)));
  return values;
}

Normaliser::Normaliser(ImageShape shape, const std::vector<ScaleShift>& factors, ImageLayout layout,
                       VectorLevel level)
    : shape_(shape), layout_(layout), level_(level) {
  if (std::ssize(factors) != shape.channels)
    throw std::invalid_argument("Normaliser: mean and std need a value a channel");
  for (std::int64_t i = 0; i < kLanes * shape.channels; ++i) {
    const ScaleShift& of_channel = factors[static_cast<std::size_t>(i % shape.channels)];
    scale_.push_back(of_channel.scale);
    shift_.push_back(of_channel.shift);
  }
}

void Normaliser::apply(const std::uint8_t* image, const kernels::SampleTransform& transform,
                       float* to) const {
  convert_for(level_, layout_)(image, shape_, layout_, scale_, shift_, to);
  if (transform.ops[0].kind == kernels::ImageOpKind::none) blank_padding(to, transform);
  for (const kernels::ErasedRectangle& rectangle : transform.erased) blank(to, rectangle);
}

void Normaliser::blank(float* to, const kernels::ErasedRectangle& rectangle) const {
  const auto clip = [](std::int64_t value, std::int64_t limit) {
    return std::clamp<std::int64_t>(value, 0, limit);
  };
  const std::int64_t first = clip(rectangle.x, shape_.width);
  const std::int64_t size = clip(std::int64_t{rectangle.x} + rectangle.width, shape_.width) - first;
  const std::int64_t end = clip(std::int64_t{rectangle.y} + rectangle.height, shape_.height);
  if (size <= 0) return;
  for (std::int64_t y = clip(rectangle.y, shape_.height); y < end; ++y) {
    if (layout_ == ImageLayout::channels_last) {
      std::fill_n(to + (y * shape_.width + first) * shape_.channels, size * shape_.channels, 0.0f);
      continue;
    }
    for (std::int64_t c = 0; c < shape_.channels; ++c)
      std::fill_n(to + (c * shape_.height + y) * shape_.width + first, size, 0.0f);
  }
}

void Normaliser::blank_padding(float* to, const kernels::SampleTransform& transform) const {
  const auto height = static_cast<std::int32_t>(shape_.height),
             width = static_cast<std::int32_t>(shape_.width);
  const kernels::AxisMap &rows = transform.rows, &columns = transform.columns;
  const std::int32_t left = transform.flip != 0 ? width - columns.end : columns.begin;
  const std::int32_t right = left + columns.end - columns.begin;
  blank(to, {0, 0, rows.begin, width});
  blank(to, {rows.end, 0, height - rows.end, width});
  blank(to, {rows.begin, 0, rows.end - rows.begin, left});
  blank(to, {rows.begin, right, rows.end - rows.begin, width - right});
}

}  // namespace convoy::data
