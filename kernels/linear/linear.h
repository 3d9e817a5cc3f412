// Fully connected layer, y = x W^T + b.
//   linear_forward           {x, weights, [bias]} -> {y}
//   linear_backward_data     {dy, weights} -> {dx}
//   linear_backward_weights  {x, dy} -> {dweights, [dbias]}
// x [N, C, H, W] in any layout or [N, C]; weights, logically, [O, C * H * W] over row-major (c, h, w); bias
// [O]; y [N, O] row_major. dweights is written in the layout that it comes with (that of the weights).
//
// On CUDA x, y, dy, dx and the weights are all f32 or all bf16; the weights row_major; bias, dweights and dbias f32.
#pragma once

#include "kernels/device/kernel.h"

namespace convoy::kernels {

struct LinearProblem {
  bool bias = true;   // whether the operands in brackets are there
  bool tf32 = false;  // CUDA: f32 operands may be rounded to tf32; host backends take them whole
};

CONVOY_KERNEL(linear_forward, LinearProblem);
CONVOY_KERNEL(linear_backward_data, LinearProblem);
CONVOY_KERNEL(linear_backward_weights, LinearProblem);

}  // namespace convoy::kernels
