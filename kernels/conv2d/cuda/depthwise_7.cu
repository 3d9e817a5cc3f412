// The depthwise engine, filters of 7x7.
#include "kernels/conv2d/cuda/depthwise.cuh"

namespace convoy::kernels::conv {
template void start_depthwise<7>(const DepthwiseCall& call, bool sums, cudaStream_t stream);
}  // namespace convoy::kernels::conv
