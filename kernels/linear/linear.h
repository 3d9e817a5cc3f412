// A fully connected layer, y = x W^T + b.
//   linear_forward           {x, weights, [bias]} -> {y}
//   linear_backward_data     {dy, weights} -> {dx}
//   linear_backward_weights  {x, dy} -> {dweights, [dbias]}
// x and dx are [N, C, H, W] in any layout, or [N, C]. The logical shape of the weights is [O, C * H
// * W], with columns in the order C, H, W. bias and dbias are [O]; y and dy are [N, O], row_major.
// dweights is written in the layout of the weights, which the request names.
//
// On CUDA x, y, dy, dx and the weights are all f32 or all bf16, and the weights are row_major.
// bias, dweights and dbias are f32.
#pragma once

#include "kernels/device/kernel.h"

namespace convoy::kernels {

struct LinearProblem {
  bool bias = true;   // the bias operands exist
  bool tf32 = false;  // CUDA may round f32 operands to tf32; host backends do not
};

CONVOY_KERNEL(linear_forward, LinearProblem);
CONVOY_KERNEL(linear_backward_data, LinearProblem);
CONVOY_KERNEL(linear_backward_weights, LinearProblem);

}  // namespace convoy::kernels
