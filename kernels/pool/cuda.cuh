// Code that the pooling kernels share: those for any window (cuda.cu), for common small windows
// (cuda_small.cu) and for whole images (cuda_global.cu). A thread computes a pack of channels (16
// bytes). In backward it gathers the gradients of its own pixels, so it needs no atomic operations
// and always sums in the same order.
#pragma once

#include "kernels/device/cuda_launch.cuh"
#include "kernels/device/divider.h"
#include "kernels/pool/pool.h"

namespace convoy::kernels::cuda {

struct PoolGeometry {
  int h, w, oh, ow;
  int kernel[2], stride[2], padding[2];
  bool count_include_pad, relu;
  int channels;
  // The number of items. An item is the work of one thread: a pack of channels of one pixel or, in
  // some kernels, of a block of pixels.
  std::int64_t items;
  // `packs` divides by the number of packs in a pixel. `columns` and `rows` divide by the number of
  // items across and down an image.
  Divider packs, columns, rows;
  Divider strides[2];  // strides[axis] divides by stride[axis]
};

struct Position {
  int row, column;  // where the item is in the image
  std::int64_t sample;
  int channel;  // the first channel of the pack
};

template <int V>
__device__ __forceinline__ Position position_of(const PoolGeometry& g, std::int64_t item) {
  const std::uint32_t pixel = g.packs(static_cast<std::uint32_t>(item));
  const std::uint32_t line = g.columns(pixel), sample = g.rows(line);
  Position at;
  at.channel = static_cast<int>(static_cast<std::uint32_t>(item) - pixel * g.packs.divisor) * V;
  at.column = static_cast<int>(pixel - line * g.columns.divisor);
  at.row = static_cast<int>(line - sample * g.rows.divisor);
  at.sample = sample;
  return at;
}

// Returns the geometry of a launch. An image has `rows` x `columns` items per pack of channels, and
// a pack has `width` channels.
PoolGeometry geometry_of(const PoolProblem& problem, const Shape& x, const Shape& y, std::int64_t rows,
                         std::int64_t columns, int width);

// Max pooling with windows of 2x2 and 3x3, and a u8 aux. Both return false, without a launch, if
// they do not support the window, the stride or the channels.
bool small_max_forward(const PoolProblem& problem, DType type, const Shape& x, const Shape& y,
                       const BoundOperands& operands, Stream stream);
bool small_max_backward(const PoolProblem& problem, DType type, const Shape& x, const Shape& y,
                        const BoundOperands& operands, Stream stream);

// Average pooling over whole images: y is 1x1, and there is no padding.
void global_average_forward(DType type, const Shape& x, const BoundOperands& operands, Stream stream);
void global_average_backward(DType type, const Shape& x, const BoundOperands& operands, Stream stream);

}  // namespace convoy::kernels::cuda
