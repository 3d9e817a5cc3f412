// Parametric ReLU (He et al., ICCV 2015), y = x > 0 ? x : slope x. A NaN stays a NaN.
//   prelu_forward   {x, slope} -> {y}               y may be x
//   prelu_backward  {x, slope, dy} -> {dx, dslope}  dx may be x or dy
// x, y, dy and dx are [N, C, H, W] or [N, C], of one layout. slope and dslope are f32 [C], or [1]
// for all channels.
#pragma once

#include "kernels/device/kernel.h"

namespace convoy::kernels {

struct PreluProblem {};

CONVOY_KERNEL(prelu_forward, PreluProblem);
CONVOY_KERNEL(prelu_backward, PreluProblem);

// Throws std::invalid_argument unless the slope is f32 [C] or f32 [1].
void require_slope(const char* operation, TensorDesc& slope, const Shape& x);

}  // namespace convoy::kernels
