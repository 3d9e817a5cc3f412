// Copies a tensor into another layout, channel padding zeroed; both layouts are given.
//   reorder_forward  {x} -> {y}
#pragma once

#include "kernels/device/kernel.h"

namespace convoy::kernels {

struct ReorderProblem {};

namespace reference {
Kernel reorder_forward(const ReorderProblem& problem, KernelRequest& request);
}  // namespace reference
namespace cpu {
Kernel reorder_forward(const ReorderProblem& problem, KernelRequest& request);
}  // namespace cpu
namespace cuda {
Kernel reorder_forward(const ReorderProblem& problem, KernelRequest& request);
}  // namespace cuda

inline Kernel reorder_forward(Backend backend, const ReorderProblem& problem, KernelRequest& request) {
  return select(backend, reference::reorder_forward, cpu::reorder_forward, cuda::reorder_forward)(problem,
                                                                                                  request);
}

}  // namespace convoy::kernels
