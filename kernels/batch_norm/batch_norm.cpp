// Choice of the backend.
#include "kernels/batch_norm/batch_norm.h"

namespace convoy::kernels {

Kernel batch_norm_statistics(Backend backend, const BatchNormProblem& problem, KernelRequest& request) {
  return select(backend, reference::batch_norm_statistics, cpu::batch_norm_statistics)(problem, request);
}
Kernel batch_norm_forward(Backend backend, const BatchNormProblem& problem, KernelRequest& request) {
  return select(backend, reference::batch_norm_forward, cpu::batch_norm_forward)(problem, request);
}
Kernel batch_norm_inference(Backend backend, const BatchNormProblem& problem, KernelRequest& request) {
  return select(backend, reference::batch_norm_inference, cpu::batch_norm_inference)(problem, request);
}
Kernel batch_norm_backward_reduce(Backend backend, const BatchNormProblem& problem, KernelRequest& request) {
  return select(backend, reference::batch_norm_backward_reduce, cpu::batch_norm_backward_reduce)(problem, request);
}
Kernel batch_norm_backward(Backend backend, const BatchNormProblem& problem, KernelRequest& request) {
  return select(backend, reference::batch_norm_backward, cpu::batch_norm_backward)(problem, request);
}

}  // namespace convoy::kernels
