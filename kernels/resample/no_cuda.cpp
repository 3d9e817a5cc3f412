// Stands in for cuda.cu in builds without CUDA.
#include "kernels/resample/resample.h"

namespace convoy::kernels::cuda {

Kernel resample_forward(const ResampleProblem&, KernelRequest&) { throw_no_backend(Backend::cuda); }

}  // namespace convoy::kernels::cuda
