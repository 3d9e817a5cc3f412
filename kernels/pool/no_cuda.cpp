// Stands in for cuda.cu in builds without CUDA.
#include "kernels/pool/pool.h"

namespace convoy::kernels::cuda {

Kernel pool_forward(const PoolProblem&, KernelRequest&) { throw_no_backend(Backend::cuda); }
Kernel pool_backward(const PoolProblem&, KernelRequest&) { throw_no_backend(Backend::cuda); }

}  // namespace convoy::kernels::cuda
