// The im2col engine's kernels of backward_data behind a batch norm with a ReLU, bf16.
#include "kernels/conv2d/im2col/sm90_norm_store.cuh"

namespace convoy::kernels::conv {

void sm90_conv_backward_data_norm(const Sm90ConvCall& call, cudaStream_t stream) {
  start_conv_norm<gemm::Math::bf16>(call, stream);
}

}  // namespace convoy::kernels::conv
