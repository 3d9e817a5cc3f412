// Stands in for cuda.cu in builds without CUDA.
#include "kernels/relu/relu.h"

namespace convoy::kernels::cuda {

Kernel relu_forward(const ReluProblem&, KernelRequest&) { throw_no_backend(Backend::cuda); }
Kernel relu_backward(const ReluProblem&, KernelRequest&) { throw_no_backend(Backend::cuda); }

}  // namespace convoy::kernels::cuda
