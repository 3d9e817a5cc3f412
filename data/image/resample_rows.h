// Resamples rows of 8-bit pixels bilinearly, in a horizontal and a vertical pass, with one
// implementation for each level of vector instructions.
#pragma once

#include <cstdint>
#include <vector>

#include "data/image/vector_level.h"

namespace convoy::data {

// The weights along one axis. An output is a weighted sum of `taps` consecutive source pixels from
// first[output] on. The weights are in units of 2^-kWeightBits (kernels/device/bilinear.h). If an
// output depends on fewer than `taps` pixels, the weights of the others are 0.
struct BilinearFilter {
  std::int32_t taps = 0;
  std::vector<std::int32_t> first;
  std::vector<std::int32_t> weight;  // [outputs][taps]
  void reserve(std::int64_t extent, std::int64_t outputs);
};

inline constexpr int kRowsAtOnce = 4;

struct ResampleRows {
  // Resizes kRowsAtOnce rows of `columns` pixels each. `from` and `to` point to the rows. An output
  // row has filter.first.size() pixels. `scratch` has room for horizontal_scratch(columns) bytes.
  // `from` may hold the same row several times.
  void (*horizontal)(const BilinearFilter& filter, const std::uint8_t* const* from, std::int64_t columns,
                     std::int64_t channels, std::uint8_t* scratch, std::uint8_t* const* to);
  // Computes one row of `bytes` bytes as a weighted sum of `taps` source rows. The starts of the
  // source rows lie `pitch` bytes apart.
  void (*vertical)(const std::int32_t* weight, std::int32_t taps, const std::uint8_t* from,
                   std::int64_t pitch, std::int64_t bytes, std::uint8_t* to);
};

const ResampleRows& resample_rows(VectorLevel level);

// Returns the size of the scratch memory in bytes: kRowsAtOnce rows with 4 bytes per pixel.
inline std::int64_t horizontal_scratch(std::int64_t columns) { return columns * kRowsAtOnce * 4; }

}  // namespace convoy::data
