// Stands in for the CUDA files in builds without CUDA.
#include "kernels/linear/linear.h"

namespace convoy::kernels::cuda {

Kernel linear_forward(const LinearProblem&, KernelRequest&) { throw_no_backend(Backend::cuda); }
Kernel linear_backward_data(const LinearProblem&, KernelRequest&) { throw_no_backend(Backend::cuda); }
Kernel linear_backward_weights(const LinearProblem&, KernelRequest&) { throw_no_backend(Backend::cuda); }

}  // namespace convoy::kernels::cuda
