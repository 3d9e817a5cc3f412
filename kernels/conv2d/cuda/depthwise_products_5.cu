// Instantiates the kernels of depthwise_products.h for filters of 5x5.
#include "kernels/conv2d/cuda/depthwise_products.cuh"

namespace convoy::kernels::conv::products {
template void start<5>(const Call& call, bool sums, cudaStream_t stream);
}  // namespace convoy::kernels::conv::products
