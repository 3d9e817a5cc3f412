// Stands in for cuda.cu in builds without CUDA.
#include "kernels/concat/concat.h"

namespace convoy::kernels::cuda {

Kernel concat_forward(const ConcatProblem&, KernelRequest&) { throw_no_backend(Backend::cuda); }
Kernel concat_backward(const ConcatProblem&, KernelRequest&) { throw_no_backend(Backend::cuda); }

}  // namespace convoy::kernels::cuda
