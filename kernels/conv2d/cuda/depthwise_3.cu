// The depthwise engine, filters of 3x3.
#include "kernels/conv2d/cuda/depthwise.cuh"

namespace convoy::kernels::conv {
template void start_depthwise<3>(const DepthwiseCall& call, bool sums, cudaStream_t stream);
}  // namespace convoy::kernels::conv
