// The wgmma rung's kernels of forward products with column sums.
#include "kernels/gemm/wgmma/sm90_launch.cuh"

namespace convoy::kernels::gemm {
template void sm90_launch<Math::bf16, false, false, Extra::sums>(const Sm90Call&, cudaStream_t);
}  // namespace convoy::kernels::gemm
