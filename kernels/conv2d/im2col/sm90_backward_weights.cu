// Instantiates the kernels of the filters' gradient, in bf16, whose TMA maps are im2col maps.
#include "kernels/conv2d/im2col/sm90_im2col.cuh"

namespace convoy::kernels::conv {
namespace {

// In narrow tiles (gemm::is_narrow) the filters are the columns of the result, in other tiles its
// rows.
template <class Config>
using Loader = std::conditional_t<(Config::taps > 1), RowGradientLoader<Config>,
                                  GradientLoader<Config, Config::columns % Config::depth != 0>>;

}  // namespace

void sm90_conv_backward_weights(const Sm90ConvCall& call, cudaStream_t stream) {
  start_conv<gemm::Math::bf16, true, true, Loader>(call, stream);
}

}  // namespace convoy::kernels::conv
