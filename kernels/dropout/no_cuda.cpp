// Stands in for cuda.cu in builds without CUDA.
#include "kernels/dropout/dropout.h"

namespace convoy::kernels::cuda {

Kernel dropout_forward(const DropoutProblem&, KernelRequest&) { throw_no_backend(Backend::cuda); }
Kernel dropout_backward(const DropoutProblem&, KernelRequest&) { throw_no_backend(Backend::cuda); }

}  // namespace convoy::kernels::cuda
