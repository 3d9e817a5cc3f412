// The im2col engine's kernels of backward_data behind a batch norm with a ReLU, bf16.
#include "kernels/conv2d/sm90_im2col.cuh"
#include "kernels/conv2d/sm90_norm_store.cuh"

namespace convoy::kernels::conv {

void sm90_conv_backward_data_norm(const Sm90ConvCall& call, cudaStream_t stream) {
  constexpr gemm::Math kMath = gemm::Math::bf16;
  gemm::with_tile(call.tile, [&]<int tile>(std::integral_constant<int, tile>) {
    if constexpr (has_kernel(gemm::kSm90Tiles[tile], kMath, false)) {
      constexpr bool kTransposed = gemm::is_narrow(gemm::kSm90Tiles[tile]);  // filters, as transposes() says
      using Config = gemm::Sm90Config<kMath, false, !kTransposed, tile>;
      gemm::start_wgmma<Config, WindowLoader<Config>, NormStore<Config>>(
          {call.images, call.other, call.window, call.filter_taps},
          {call.c,
           call.plain,
           {call.norm_operands[0], call.norm_operands[1]},
           call.m,
           call.n,
           call.mask,
           call.sum_slots,
           call.placement.control,
           call.placement.sample_rows},
          call.schedule, call.blocks, stream);
    }
  });
}

}  // namespace convoy::kernels::conv
