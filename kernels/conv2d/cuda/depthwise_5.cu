// The depthwise engine, filters of 5x5.
#include "kernels/conv2d/cuda/depthwise.cuh"

namespace convoy::kernels::conv {
template void start_depthwise<5>(const DepthwiseCall& call, bool sums, cudaStream_t stream);
}  // namespace convoy::kernels::conv
