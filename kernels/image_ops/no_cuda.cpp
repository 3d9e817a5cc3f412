// Stands in for cuda.cu in builds without CUDA.
#include "kernels/image_ops/image_ops.h"

namespace convoy::kernels::cuda {

Kernel image_ops_forward(const ImageOpsProblem&, KernelRequest&) { throw_no_backend(Backend::cuda); }

}  // namespace convoy::kernels::cuda
