// The im2col engine's kernels of forward and of backward_data, tf32.
#include "kernels/conv2d/im2col/sm90_im2col.cuh"

namespace convoy::kernels::conv {

void sm90_conv_forward_tf32(const Sm90ConvCall& call, cudaStream_t stream) {
  start_conv<gemm::Math::tf32, false, false, WindowLoader>(call, stream);
}

}  // namespace convoy::kernels::conv
