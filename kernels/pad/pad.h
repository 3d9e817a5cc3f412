// Constant padding of images in height and width. A negative amount cuts pixels off.
//   pad_forward   {x} -> {y}
//   pad_backward  {dy} -> {dx}   pixels that forward cut off get zero
// x [N, C, H, W], y [N, C, top + H + bottom, left + W + right].
#pragma once

#include "kernels/device/kernel.h"

namespace convoy::kernels {

struct PadProblem {
  int top = 0, bottom = 0, left = 0, right = 0;
  float value = 0;
};

// Throws std::invalid_argument if nothing would be left.
Shape pad_output_shape(const PadProblem& problem, const Shape& x);
// Backward is forward with this problem.
constexpr PadProblem turned(const PadProblem& p) { return {-p.top, -p.bottom, -p.left, -p.right, 0}; }

CONVOY_KERNEL(pad_forward, PadProblem);
CONVOY_KERNEL(pad_backward, PadProblem);

}  // namespace convoy::kernels
