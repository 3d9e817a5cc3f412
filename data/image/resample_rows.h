// The two passes of bilinear resampling over rows of 8-bit pixels, for each level of vector
// instructions.
#pragma once

#include <cstdint>
#include <vector>

#include "data/image/vector_level.h"

namespace convoy::data {

// The weights along one axis. Each output has a first source pixel and the weights of `taps` source
// pixels from there on, in units of 2^-kWeightBits (kernels/device/bilinear.h). Weights that an
// output does not need are 0.
struct BilinearFilter {
  std::int32_t taps = 0;
  std::vector<std::int32_t> first;
  std::vector<std::int32_t> weight;  // [outputs][taps]
  void reserve(std::int64_t extent, std::int64_t outputs);
};

inline constexpr int kRowsAtOnce = 4;

struct ResampleRows {
  // Resizes kRowsAtOnce rows of `columns` pixels, `from`, to rows of filter.first.size() pixels,
  // `to`. `scratch` has room for horizontal_scratch(columns) bytes. The same row may be given
  // several times.
  void (*horizontal)(const BilinearFilter& filter, const std::uint8_t* const* from, std::int64_t columns,
                     std::int64_t channels, std::uint8_t* scratch, std::uint8_t* const* to);
  // Computes one row of `bytes` bytes as the weighted sum of `taps` rows that lie `pitch` bytes
  // apart.
  void (*vertical)(const std::int32_t* weight, std::int32_t taps, const std::uint8_t* from,
                   std::int64_t pitch, std::int64_t bytes, std::uint8_t* to);
};

const ResampleRows& resample_rows(VectorLevel level);

// Returns the bytes of scratch memory: kRowsAtOnce rows of pixels that are padded to 4 bytes.
inline std::int64_t horizontal_scratch(std::int64_t columns) { return columns * kRowsAtOnce * 4; }

}  // namespace convoy::data
