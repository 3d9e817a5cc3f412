// Spatial pooling as PyTorch defines it: the output has floor or (ceil_mode) ceil((extent + 2 padding -
// kernel) / stride) + 1 positions, less a last one that would start beyond the image and its leading padding.
// A global pool is an average with the image as its kernel.
//   max:      pool_forward   {x} -> {y, aux}     y = [relu](maximum)
//             aux: for backward alone, its type and shape up to the maker
//             pool_backward  {aux, dy} -> {dx}
//   average:  pool_forward   {x} -> {y}
//             pool_backward  {dy} -> {dx}
// x [N, C, H, W], y [N, C, OH, OW]. The first of equal maxima gets the gradient; a NaN wins over any number. Where the
// ReLU is fused, dy is the gradient before it (run relu_backward on y first).
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
  bool count_include_pad =
      true;           // average: whether padding counts in the divisor (what ceil_mode adds never does)
  bool relu = false;  // forward, maxima only
};

// [N, C, OH, OW]; throws if the kernel does not fit.
Shape pool_output_shape(const PoolProblem& problem, const Shape& x);

CONVOY_KERNEL(pool_forward, PoolProblem);
CONVOY_KERNEL(pool_backward, PoolProblem);

}  // namespace convoy::kernels
