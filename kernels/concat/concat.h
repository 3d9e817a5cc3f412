// Concatenation along the channels of images [N, Ci, H, W] or matrices [N, Ci].
//   concat_forward   {x0, x1, ...} -> {y}     y [N, C0 + C1 + ..., H, W]
//   concat_backward  {dy} -> {dx0, dx1, ...}
#pragma once

#include "kernels/device/kernel.h"

namespace convoy::kernels {

struct ConcatProblem {};

namespace reference {
Kernel concat_forward(const ConcatProblem& problem, KernelRequest& request);
Kernel concat_backward(const ConcatProblem& problem, KernelRequest& request);
}  // namespace reference
namespace cpu {
Kernel concat_forward(const ConcatProblem& problem, KernelRequest& request);
Kernel concat_backward(const ConcatProblem& problem, KernelRequest& request);
}  // namespace cpu
namespace cuda {
Kernel concat_forward(const ConcatProblem& problem, KernelRequest& request);
Kernel concat_backward(const ConcatProblem& problem, KernelRequest& request);
}  // namespace cuda

inline Kernel concat_forward(Backend backend, const ConcatProblem& problem, KernelRequest& request) {
  return select(backend, reference::concat_forward, cpu::concat_forward, cuda::concat_forward)(problem,
                                                                                               request);
}
inline Kernel concat_backward(Backend backend, const ConcatProblem& problem, KernelRequest& request) {
  return select(backend, reference::concat_backward, cpu::concat_backward, cuda::concat_backward)(problem,
                                                                                                  request);
}

}  // namespace convoy::kernels
