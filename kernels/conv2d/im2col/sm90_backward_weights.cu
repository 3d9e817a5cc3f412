// Instantiates the kernels of backward_weights through im2col maps, in bf16.
#include "kernels/conv2d/im2col/sm90_im2col.cuh"

namespace convoy::kernels::conv {
namespace {

// In narrow tiles (gemm::is_narrow) the filters are the columns of the result, else its rows.
template <class Config>
using Loader = std::conditional_t<(Config::taps > 1), RowGradientLoader<Config>,
                                  GradientLoader<Config, Config::columns % Config::depth != 0>>;

}  // namespace

void sm90_conv_backward_weights(const Sm90ConvCall& call, cudaStream_t stream) {
  start_conv<gemm::Math::bf16, true, true, Loader>(call, stream);
}

}  // namespace convoy::kernels::conv
