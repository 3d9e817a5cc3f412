// Instantiates the kernels of depthwise_strips.h for filters of 3x3.
#include "kernels/conv2d/cuda/depthwise_strips.cuh"

namespace convoy::kernels::conv::strips {
template void start<3>(const Call& call, bool sums, cudaStream_t stream);
}  // namespace convoy::kernels::conv::strips
