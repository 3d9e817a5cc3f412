// Stands in for cuda.cu in builds without CUDA.
#include "kernels/optimizer/optimizer.h"

namespace convoy::kernels::cuda {

Kernel optimizer_update(const OptimizerProblem&, KernelRequest&) { throw_no_backend(Backend::cuda); }
Kernel squared_norm(const SquaredNormProblem&, KernelRequest&) { throw_no_backend(Backend::cuda); }
Kernel moving_average(const MovingAverageProblem&, KernelRequest&) { throw_no_backend(Backend::cuda); }
Kernel clip_scale(const ClipProblem&, KernelRequest&) { throw_no_backend(Backend::cuda); }

}  // namespace convoy::kernels::cuda
