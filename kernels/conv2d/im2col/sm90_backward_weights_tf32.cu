// Instantiates the kernels of the filters' gradient, in tf32, whose TMA maps are im2col maps. k
// runs over positions, so it is not contiguous in either operand.
#include "kernels/conv2d/im2col/sm90_im2col.cuh"
#include "kernels/gemm/wgmma/sm90_mn_major.cuh"

namespace convoy::kernels::conv {
namespace {

struct GradientResult {
  float* data;  // [splits][K][taps][C]
  int k, taps, c;
  cuda::Divider blocks;  // divides by the number of 32-channel blocks in a tap

  struct Partial {
    const GradientResult& of;
    float* data;
    // Stores the values of `count` neighbouring channels of one tap.
    template <int count>
    __device__ void store(const float (&values)[count], int row, int column) const {
      const std::uint32_t block = std::uint32_t(column) / 32, tap = of.blocks(block);
      const int channel = int(block - tap * of.blocks.divisor) * 32 + column % 32;
      if (row >= of.k || int(tap) >= of.taps || channel >= of.c) return;
      using Vector = std::conditional_t<count == 4, float4, float2>;
      *reinterpret_cast<Vector*>(data + (std::int64_t{row} * of.taps + tap) * of.c + channel) =
          *reinterpret_cast<const Vector*>(values);
    }
  };
  template <class Store>
  __device__ void with_split(int split, std::ptrdiff_t offset, Store store) const {
    store(Partial{*this, gemm::Epilogue::moved(data, offset) + std::int64_t{split} * k * taps * c});
  }
};

}  // namespace

void sm90_conv_backward_weights_tf32(const Sm90ConvCall& call, cudaStream_t stream) {
  gemm::with_tile<gemm::kMnMajorTiles>(call.tile, [&]<int tile>(std::integral_constant<int, tile>) {
    using Config = gemm::MnMajorConfig<tile>;
    const GradientResult result{call.gradient, call.m, call.taps, call.channels, call.window.blocks};
    gemm::start_mn_major<Config, GradientLoader<Config, Config::x_is_n>>(
        loader_parameters(call), result, call.schedule, call.blocks, call.members, stream);
  });
}

}  // namespace convoy::kernels::conv
