// Instantiates the kernels of depthwise_strips.h for filters of 5x5.
#include "kernels/conv2d/cuda/depthwise_strips.cuh"

namespace convoy::kernels::conv::strips {
template void start<5>(const Call& call, bool sums, cudaStream_t stream);
}  // namespace convoy::kernels::conv::strips
