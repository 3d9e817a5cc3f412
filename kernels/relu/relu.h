// Rectified linear unit, y = max(x, 0), NaN kept. Tensors of any shape and layout, all of one.
//   relu_forward   {x} -> {y}        y may be x
//   relu_backward  {y, dy} -> {dx}   dx = y > 0 ? dy : 0; dx may be dy
#pragma once

#include "kernels/device/kernel.h"

namespace convoy::kernels {

struct ReluProblem {};

namespace reference {
Kernel relu_forward(const ReluProblem& problem, KernelRequest& request);
Kernel relu_backward(const ReluProblem& problem, KernelRequest& request);
}  // namespace reference
namespace cpu {
Kernel relu_forward(const ReluProblem& problem, KernelRequest& request);
Kernel relu_backward(const ReluProblem& problem, KernelRequest& request);
void rectify(float* values, std::int64_t count);  // in place
}  // namespace cpu
namespace cuda {
Kernel relu_forward(const ReluProblem& problem, KernelRequest& request);
Kernel relu_backward(const ReluProblem& problem, KernelRequest& request);
}  // namespace cuda

inline Kernel relu_forward(Backend backend, const ReluProblem& problem, KernelRequest& request) {
  return select(backend, reference::relu_forward, cpu::relu_forward, cuda::relu_forward)(problem, request);
}
inline Kernel relu_backward(Backend backend, const ReluProblem& problem, KernelRequest& request) {
  return select(backend, reference::relu_backward, cpu::relu_backward, cuda::relu_backward)(problem, request);
}

}  // namespace convoy::kernels
