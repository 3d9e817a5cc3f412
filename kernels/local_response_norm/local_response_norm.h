// Local response normalisation across channels (Krizhevsky, Sutskever, Hinton, NIPS 2012):
// y_c = x_c / (k + alpha / size * (sum of x_j^2 over `size` channels around c)) ^ beta.
// alpha is defined as in PyTorch.
//   local_response_norm_forward   {x} -> {y, aux}
//   local_response_norm_backward  {x, y, aux, dy} -> {dx}   dx may be dy
// Tensors are [N, C, H, W]. Only backward reads aux, and each backend chooses its type and shape.
#pragma once

#include "kernels/device/kernel.h"

namespace convoy::kernels {

struct LocalResponseNormProblem {
  int size = 5;
  float alpha = 1e-4f;
  float beta = 0.75f;
  float k = 1.0f;
};

CONVOY_KERNEL(local_response_norm_forward, LocalResponseNormProblem);
CONVOY_KERNEL(local_response_norm_backward, LocalResponseNormProblem);

}  // namespace convoy::kernels
