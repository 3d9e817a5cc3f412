// Stands in for cuda.cu in builds without CUDA.
#include "kernels/normalise/normalise.h"

namespace convoy::kernels::cuda {

Kernel normalise_forward(const NormaliseProblem&, KernelRequest&) { throw_no_backend(Backend::cuda); }

}  // namespace convoy::kernels::cuda
