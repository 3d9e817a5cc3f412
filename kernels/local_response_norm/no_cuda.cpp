// Stands in for cuda.cu in builds without CUDA.
#include "kernels/local_response_norm/local_response_norm.h"

namespace convoy::kernels::cuda {

Kernel local_response_norm_forward(const LocalResponseNormProblem&, KernelRequest&) {
  throw_no_backend(Backend::cuda);
}
Kernel local_response_norm_backward(const LocalResponseNormProblem&, KernelRequest&) {
  throw_no_backend(Backend::cuda);
}

}  // namespace convoy::kernels::cuda
