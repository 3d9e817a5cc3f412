// Choice of the backend.
#include "kernels/batch_norm/batch_norm.h"

namespace convoy::kernels {

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
