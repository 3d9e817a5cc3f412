// Code that the pooling kernels share. These kernels serve any window (cuda.cu), common small
// windows (cuda_small.cu) and whole images (cuda_global.cu). A thread has a pack of channels.
// Backward gathers, so it needs no atomics and always sums in the same order.
#pragma once

#include "kernels/device/cuda_launch.cuh"
#include "kernels/device/divider.h"
#include "kernels/pool/pool.h"

namespace convoy::kernels::cuda {

struct Geometry {
  int h, w, oh, ow;
  int kernel[2], stride[2], padding[2];
  bool count_include_pad, relu;
  int channels;
  // The number of threads that have work. Each has one item: a pack of one pixel or, in some
  // kernels, of a block of pixels.
  std::int64_t items;
  // For divisions by the number of packs in a pixel, and by the number of items in width and
  // height.
  Divider packs, columns, rows;
  Divider strides[2];
};

struct Position {
  int row, column;  // the position of the item among all items of an image
  std::int64_t sample;
  int channel;  // the first channel of the pack
};

template <int V>
__device__ __forceinline__ Position position_of(const Geometry& g, std::int64_t item) {
  const std::uint32_t pixel = g.packs(static_cast<std::uint32_t>(item));
  const std::uint32_t line = g.columns(pixel), sample = g.rows(line);
  Position at;
  at.channel = static_cast<int>(static_cast<std::uint32_t>(item) - pixel * g.packs.divisor) * V;
  at.column = static_cast<int>(pixel - line * g.columns.divisor);
  at.row = static_cast<int>(line - sample * g.rows.divisor);
  at.sample = sample;
  return at;
}

// Returns the geometry of a launch that has `rows` x `columns` items in an image. `width`: the
// channels of a pack.
Geometry geometry_of(const PoolProblem& problem, const Shape& x, const Shape& y, std::int64_t rows,
                     std::int64_t columns, int width);

// Take maxima over windows of 2x2 and 3x3, with a u8 aux. Both functions launch a kernel and return
// true, or return false if they do not support the window, the stride or the channels.
bool small_max_forward(const PoolProblem& problem, DType type, const Shape& x, const Shape& y,
                       const BoundOperands& operands, Stream stream);
bool small_max_backward(const PoolProblem& problem, DType type, const Shape& x, const Shape& y,
                        const BoundOperands& operands, Stream stream);

// Average whole images: y is 1x1, and there is no padding.
void global_average_forward(DType type, const Shape& x, const BoundOperands& operands, Stream stream);
void global_average_backward(DType type, const Shape& x, const BoundOperands& operands, Stream stream);

}  // namespace convoy::kernels::cuda
