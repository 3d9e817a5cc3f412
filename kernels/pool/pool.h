// Pools images as PyTorch does. An axis of the output has floor((extent + 2 padding - kernel) /
// stride) + 1 positions. With ceil_mode, the quotient is rounded up instead, except that no window
// starts after the end of the image.
//   max:      pool_forward   {x} -> {y, aux}     y = [relu](maximum)
//             pool_backward  {aux, dy} -> {dx}
//   average:  pool_forward   {x} -> {y}
//             pool_backward  {dy} -> {dx}
// x is [N, C, H, W], y [N, C, OH, OW]. aux says where in the windows the maxima are. Only backward
// reads aux, and each backend chooses its type and shape. The first of equal maxima gets the
// gradient. NaN counts as larger than any number. If the ReLU is fused, dy is the gradient before
// the ReLU, so run relu_backward on y first.
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
  // Says whether padding counts in the divisor of an average. Positions beyond the padding, which
  // ceil_mode adds, never count.
  bool count_include_pad = true;
  bool relu = false;  // fuses a ReLU into the forward pass; for maxima only
};

// Returns [N, C, OH, OW]. Throws std::invalid_argument if the kernel does not fit.
Shape pool_output_shape(const PoolProblem& problem, const Shape& x);

CONVOY_KERNEL(pool_forward, PoolProblem);
CONVOY_KERNEL(pool_backward, PoolProblem);

}  // namespace convoy::kernels
