// The rule of the flags, and choice of the backend.
#include "kernels/batch_norm/batch_norm.h"

#include <fmt/format.h>

#include <stdexcept>

namespace convoy::kernels {

void require_batch_norm_flags(const char* operation, const BatchNormProblem& problem) {
  if ((problem.second_gradient || (problem.relu && problem.residual)) && !problem.write_gradient)
    throw std::invalid_argument(fmt::format(
        "{}: write_gradient is needed with second_gradient or with relu and residual", operation));
}

Kernel batch_norm_statistics(Backend backend, const BatchNormProblem& problem, KernelRequest& request) {
  return select(backend, reference::batch_norm_statistics, nullptr)(problem, request);
}
Kernel batch_norm_forward(Backend backend, const BatchNormProblem& problem, KernelRequest& request) {
  return select(backend, reference::batch_norm_forward, nullptr)(problem, request);
}
Kernel batch_norm_inference(Backend backend, const BatchNormProblem& problem, KernelRequest& request) {
  return select(backend, reference::batch_norm_inference, nullptr)(problem, request);
}
Kernel batch_norm_backward_reduce(Backend backend, const BatchNormProblem& problem, KernelRequest& request) {
  return select(backend, reference::batch_norm_backward_reduce, nullptr)(problem, request);
}
Kernel batch_norm_backward(Backend backend, const BatchNormProblem& problem, KernelRequest& request) {
  return select(backend, reference::batch_norm_backward, nullptr)(problem, request);
}

}  // namespace convoy::kernels
