// Stands in for cuda.cu in builds without CUDA.
#include "kernels/reorder/reorder.h"

namespace convoy::kernels::cuda {

Kernel reorder_forward(const ReorderProblem&, KernelRequest&) { throw_no_backend(Backend::cuda); }

}  // namespace convoy::kernels::cuda
