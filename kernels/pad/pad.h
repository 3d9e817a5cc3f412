// Pads images in height and width with a constant. With a negative amount, pixels are cut off
// instead.
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

// Returns the shape of y. Throws std::invalid_argument if y would have no pixels.
Shape pad_output_shape(const PadProblem& problem, const Shape& x);
// Returns the padding with which pad_forward turns dy into dx: it cuts padding off, and adds zeros
// where pixels were cut off.
constexpr PadProblem turned(const PadProblem& p) { return {-p.top, -p.bottom, -p.left, -p.right, 0}; }

CONVOY_KERNEL(pad_forward, PadProblem);
CONVOY_KERNEL(pad_backward, PadProblem);

}  // namespace convoy::kernels
