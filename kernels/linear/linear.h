// A fully connected layer, y = x W^T + b.
//   linear_forward           {x, weights, [bias]} -> {y}
//   linear_backward_data     {dy, weights} -> {dx}
//   linear_backward_weights  {x, dy} -> {dweights, [dbias]}
// x [N, C, H, W] in any layout or [N, C]; weights, logically, [O, C * H * W] over row-major (c, h,
// w); bias [O]; y [N, O] row_major. dweights is written in the layout that it is given (that of the
// weights).
//
// On CUDA x, y, dy, dx and the weights are all f32 or all bf16; the weights are row_major; bias,
// dweights and dbias are f32.
#pragma once

#include "kernels/device/kernel.h"

namespace convoy::kernels {

struct LinearProblem {
  bool bias = true;   // whether the bias operands exist
  bool tf32 = false;  // CUDA may round f32 operands to tf32; host backends do not
};

CONVOY_KERNEL(linear_forward, LinearProblem);
CONVOY_KERNEL(linear_backward_data, LinearProblem);
CONVOY_KERNEL(linear_backward_weights, LinearProblem);

}  // namespace convoy::kernels
