// Stands in for cuda.cu in builds without CUDA.
#include "kernels/mix/mix.h"

namespace convoy::kernels::cuda {

Kernel mix_forward(const MixProblem&, KernelRequest&) { throw_no_backend(Backend::cuda); }

}  // namespace convoy::kernels::cuda
