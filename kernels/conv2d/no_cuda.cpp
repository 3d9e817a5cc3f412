// Stands in for the CUDA files in builds without CUDA.
#include "kernels/conv2d/conv2d.h"

namespace convoy::kernels::cuda {

Kernel conv2d_forward(const Conv2dProblem&, KernelRequest&) { throw_no_backend(Backend::cuda); }
Kernel conv2d_backward_data(const Conv2dProblem&, KernelRequest&) { throw_no_backend(Backend::cuda); }
Kernel conv2d_backward_weights(const Conv2dProblem&, KernelRequest&) { throw_no_backend(Backend::cuda); }

}  // namespace convoy::kernels::cuda
