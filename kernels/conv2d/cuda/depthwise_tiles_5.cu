// Instantiates the kernels of depthwise_tiles.h for filters of 5x5.
#include "kernels/conv2d/cuda/depthwise_tiles.cuh"

namespace convoy::kernels::conv::tiles {
template void start<5>(const Call& call, bool sums, cudaStream_t stream);
}  // namespace convoy::kernels::conv::tiles
