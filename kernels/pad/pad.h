// Pads images in height and width with a constant. A negative amount cuts pixels off.
//   pad_forward   {x} -> {y}
//   pad_backward  {dy} -> {dx}   pixels that forward cut off get zero
// x is [N, C, H, W], y [N, C, top + H + bottom, left + W + right].
#pragma once

#include "kernels/device/kernel.h"

namespace convoy::kernels {

struct PadProblem {
  int top = 0, bottom = 0, left = 0, right = 0;
  float value = 0;
};

// Returns the shape of y. Throws std::invalid_argument if it has no pixels.
Shape pad_output_shape(const PadProblem& problem, const Shape& x);
// Returns the problem that undoes `p`, by which pad_forward computes the gradient: padding is cut
// off, and pixels that were cut off become zero.
constexpr PadProblem turned(const PadProblem& p) { return {-p.top, -p.bottom, -p.left, -p.right, 0}; }

CONVOY_KERNEL(pad_forward, PadProblem);
CONVOY_KERNEL(pad_backward, PadProblem);

}  // namespace convoy::kernels
