// Rectified linear unit, y = max(x, 0). A NaN stays a NaN. All tensors have the same shape and
// layout, which may be any.
//   relu_forward   {x} -> {y}        y may be x
//   relu_backward  {y, dy} -> {dx}   dx = y > 0 ? dy : 0; dx may be dy
#pragma once

#include "kernels/device/kernel.h"

namespace convoy::kernels {

struct ReluProblem {};

CONVOY_KERNEL(relu_forward, ReluProblem);
CONVOY_KERNEL(relu_backward, ReluProblem);
namespace cpu {
void rectify(float* values, std::int64_t count);  // applies the ReLU in place
}  // namespace cpu

}  // namespace convoy::kernels
