// The im2col engine's kernels of backward_data, bf16.
#include "kernels/conv2d/im2col/sm90_im2col.cuh"

namespace convoy::kernels::conv {

void sm90_conv_backward_data(const Sm90ConvCall& call, cudaStream_t stream) {
  start_conv<gemm::Math::bf16, false, true, WindowLoader>(call, stream);
}

}  // namespace convoy::kernels::conv
