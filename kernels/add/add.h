// Sum of two or more tensors of one shape and layout: residual connections, and gradients that meet.
//   add_forward  {a, b, ...} -> {y, [sums: statistics]}   y may be a
// sums: batch norm's over y as it is stored, see batch_norm.h. They need a control; reference and cuda give them.
// There is no backward: the gradient of every input is dy itself.
#pragma once

#include "kernels/device/kernel.h"

namespace convoy::kernels {

struct AddProblem {
  bool statistics = false;  // for the batch norm behind it
};

namespace reference {
Kernel add_forward(const AddProblem& problem, KernelRequest& request);
}  // namespace reference
namespace cpu {
Kernel add_forward(const AddProblem& problem, KernelRequest& request);
}  // namespace cpu
namespace cuda {
Kernel add_forward(const AddProblem& problem, KernelRequest& request);
}  // namespace cuda

inline Kernel add_forward(Backend backend, const AddProblem& problem, KernelRequest& request) {
  return select(backend, reference::add_forward, cpu::add_forward, cuda::add_forward)(problem, request);
}

}  // namespace convoy::kernels
