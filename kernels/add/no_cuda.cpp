// Stands in for cuda.cu in builds without CUDA.
#include "kernels/add/add.h"

namespace convoy::kernels::cuda {

Kernel add_forward(const AddProblem&, KernelRequest&) { throw_no_backend(Backend::cuda); }

}  // namespace convoy::kernels::cuda
