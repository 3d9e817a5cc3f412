// Stands in for cuda.cu in builds without CUDA.
#include "kernels/batch_norm/batch_norm.h"

namespace convoy::kernels::cuda {

Kernel batch_norm_statistics(const BatchNormProblem&, KernelRequest&) { throw_no_backend(Backend::cuda); }
Kernel batch_norm_forward(const BatchNormProblem&, KernelRequest&) { throw_no_backend(Backend::cuda); }
Kernel batch_norm_inference(const BatchNormProblem&, KernelRequest&) { throw_no_backend(Backend::cuda); }
Kernel batch_norm_backward_reduce(const BatchNormProblem&, KernelRequest&) {
  throw_no_backend(Backend::cuda);
}
Kernel batch_norm_backward(const BatchNormProblem&, KernelRequest&) { throw_no_backend(Backend::cuda); }

}  // namespace convoy::kernels::cuda
