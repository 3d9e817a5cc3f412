// Stands in for cuda.cu in builds without CUDA.
#include "kernels/augment/augment.h"

namespace convoy::kernels::cuda {

Kernel augment_forward(const AugmentProblem&, KernelRequest&) { throw_no_backend(Backend::cuda); }

}  // namespace convoy::kernels::cuda
