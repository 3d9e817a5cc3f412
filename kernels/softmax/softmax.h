// Softmax over the channels, for every row of a matrix or every pixel of an image.
//   softmax_forward   {x} -> {y}        y may be x
//   softmax_backward  {y, dy} -> {dx}   dx = y (dy - sum(y dy)); dx may be y or dy
// All tensors are [N, C, H, W] or [N, C], of one layout. For the loss see
// kernels/softmax_cross_entropy.
#pragma once

#include "kernels/device/kernel.h"

namespace convoy::kernels {

struct SoftmaxProblem {};

CONVOY_KERNEL(softmax_forward, SoftmaxProblem);
CONVOY_KERNEL(softmax_backward, SoftmaxProblem);

}  // namespace convoy::kernels
