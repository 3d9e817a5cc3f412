// The wgmma rung's kernels for one order of A and B.
#include "kernels/gemm/wgmma/sm90_launch.cuh"

namespace convoy::kernels::gemm {
template void sm90_launch<Math::tf32, false, false, Extra::none>(const Sm90Call&, cudaStream_t);
}  // namespace convoy::kernels::gemm
