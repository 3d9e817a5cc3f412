// Stands in for cuda.cu in builds without CUDA.
#include "kernels/accumulate/accumulate.h"

namespace convoy::kernels::cuda {

Kernel accumulate_gradients(const AccumulateProblem&, KernelRequest&) { throw_no_backend(Backend::cuda); }

}  // namespace convoy::kernels::cuda
