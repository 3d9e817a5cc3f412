// Local response normalisation across channels (Krizhevsky, Sutskever, Hinton, NIPS 2012), with PyTorch's
// meaning of alpha: y_c = x_c / (k + alpha / size * sum of x_j^2 over size channels around c) ^ beta.
//   local_response_norm_forward   {x} -> {y, aux}         aux: for backward alone, the maker's choice
//   local_response_norm_backward  {x, y, aux, dy} -> {dx}  dx may be dy
// Tensors [N, C, H, W].
#pragma once

#include "kernels/device/kernel.h"

namespace convoy::kernels {

struct LocalResponseNormProblem {
  int size = 5;
  float alpha = 1e-4f;
  float beta = 0.75f;
  float k = 1.0f;
};

namespace reference {
Kernel local_response_norm_forward(const LocalResponseNormProblem& problem, KernelRequest& request);
Kernel local_response_norm_backward(const LocalResponseNormProblem& problem, KernelRequest& request);
}  // namespace reference
namespace cpu {
Kernel local_response_norm_forward(const LocalResponseNormProblem& problem, KernelRequest& request);
Kernel local_response_norm_backward(const LocalResponseNormProblem& problem, KernelRequest& request);
}  // namespace cpu
namespace cuda {
Kernel local_response_norm_forward(const LocalResponseNormProblem& problem, KernelRequest& request);
Kernel local_response_norm_backward(const LocalResponseNormProblem& problem, KernelRequest& request);
}  // namespace cuda

inline Kernel local_response_norm_forward(Backend backend, const LocalResponseNormProblem& problem,
                                          KernelRequest& request) {
  return select(backend, reference::local_response_norm_forward, cpu::local_response_norm_forward,
                cuda::local_response_norm_forward)(problem, request);
}
inline Kernel local_response_norm_backward(Backend backend, const LocalResponseNormProblem& problem,
                                           KernelRequest& request) {
  return select(backend, reference::local_response_norm_backward, cpu::local_response_norm_backward,
                cuda::local_response_norm_backward)(problem, request);
}

}  // namespace convoy::kernels
