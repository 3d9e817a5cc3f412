// Stands in for cuda.cu in builds without CUDA.
#include "kernels/softmax_cross_entropy/softmax_cross_entropy.h"

namespace convoy::kernels::cuda {

Kernel softmax_cross_entropy_forward(const LossProblem&, KernelRequest&) { throw_no_backend(Backend::cuda); }
Kernel softmax_cross_entropy_backward(const LossProblem&, KernelRequest&) { throw_no_backend(Backend::cuda); }

}  // namespace convoy::kernels::cuda
