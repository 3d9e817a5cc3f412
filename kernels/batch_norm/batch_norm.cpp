// The rule of the flags, and choice of the backend.
#include "kernels/batch_norm/batch_norm.h"

#include <fmt/format.h>

#include <stdexcept>

namespace convoy::kernels {

void require_batch_norm_flags(const char* operation, const BatchNormProblem& problem) {
  if ((problem.second_gradient || (problem.relu && problem.residual)) && !problem.write_gradient)
    throw std::invalid_argument(fmt::format(
        "{}: write_gradient is needed with second_gradient or with relu and residual", operation));
  if (problem.relu_mask && !(problem.relu && problem.residual))
    throw std::invalid_argument(fmt::format("{}: relu_mask goes with relu and residual", operation));
}

Kernel batch_norm_statistics(Backend backend, const BatchNormProblem& problem, KernelRequest& request) {
  return select(backend, reference::batch_norm_statistics, cpu::batch_norm_statistics,
                cuda::batch_norm_statistics)(problem, request);
}
Kernel batch_norm_forward(Backend backend, const BatchNormProblem& problem, KernelRequest& request) {
  return select(backend, reference::batch_norm_forward, cpu::batch_norm_forward, cuda::batch_norm_forward)(
      problem, request);
}
Kernel batch_norm_inference(Backend backend, const BatchNormProblem& problem, KernelRequest& request) {
  return select(backend, reference::batch_norm_inference, cpu::batch_norm_inference,
                cuda::batch_norm_inference)(problem, request);
}
Kernel batch_norm_backward_reduce(Backend backend, const BatchNormProblem& problem, KernelRequest& request) {
  return select(backend, reference::batch_norm_backward_reduce, cpu::batch_norm_backward_reduce,
                cuda::batch_norm_backward_reduce)(problem, request);
}
Kernel batch_norm_backward(Backend backend, const BatchNormProblem& problem, KernelRequest& request) {
  return select(backend, reference::batch_norm_backward, cpu::batch_norm_backward, cuda::batch_norm_backward)(
      problem, request);
}

}  // namespace convoy::kernels
