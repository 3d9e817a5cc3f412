// Parametric ReLU (He et al., ICCV 2015), y = x > 0 ? x : slope x; NaN is kept.
//   prelu_forward   {x, slope} -> {y}               y may be x
//   prelu_backward  {x, slope, dy} -> {dx, dslope}  dx may be x or dy
// x, y, dy, dx [N, C, H, W] or [N, C] of one layout; slope, dslope f32 [C], or [1] for all
// channels.
#pragma once

#include "kernels/device/kernel.h"

namespace convoy::kernels {

struct PreluProblem {};

CONVOY_KERNEL(prelu_forward, PreluProblem);
CONVOY_KERNEL(prelu_backward, PreluProblem);

// Throws std::invalid_argument if the slope is neither f32 [C] nor [1].
void require_slope(const char* operation, TensorDesc& slope, const Shape& x);

}  // namespace convoy::kernels
