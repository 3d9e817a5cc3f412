// Spatial pooling as in PyTorch: the output has floor (or with ceil_mode ceil) ((extent + 2 padding
// - kernel) / stride) + 1 positions, less a last one that would start after the image and its
// leading padding. A global pool is an average whose kernel is the image.
//   max:      pool_forward   {x} -> {y, aux}     y = [relu](maximum)
//             pool_backward  {aux, dy} -> {dx}
//   average:  pool_forward   {x} -> {y}
//             pool_backward  {dy} -> {dx}
// x [N, C, H, W], y [N, C, OH, OW]. Only backward reads aux; the maker chooses its type and shape.
// The first of equal maxima gets the gradient, and NaN is larger than any number. If the ReLU is
// fused, dy is the gradient before it (run relu_backward on y first).
#pragma once

#include <array>

#include "kernels/device/kernel.h"

namespace convoy::kernels {

enum class PoolKind : std::uint8_t { max, average };

struct PoolProblem {
  PoolKind kind = PoolKind::max;
  std::array<int, 2> kernel{2, 2};  // height, width
  std::array<int, 2> stride{2, 2};
  std::array<int, 2> padding{0, 0};  // on both sides, at most half the kernel
  bool ceil_mode = false;
  // average: whether padding counts in the divisor. Positions that ceil_mode adds never count.
  bool count_include_pad = true;
  bool relu = false;  // forward, for maxima only
};

// Returns [N, C, OH, OW]. Throws std::invalid_argument if the kernel does not fit.
Shape pool_output_shape(const PoolProblem& problem, const Shape& x);

CONVOY_KERNEL(pool_forward, PoolProblem);
CONVOY_KERNEL(pool_backward, PoolProblem);

}  // namespace convoy::kernels
