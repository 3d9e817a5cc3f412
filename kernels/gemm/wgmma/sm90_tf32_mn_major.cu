// Instantiates the wgmma kernels for tf32 operands whose k is not contiguous (sm90_mn_major.cuh).
#include "kernels/gemm/wgmma/sm90_mn_major.cuh"

namespace convoy::kernels::gemm {

void sm90_launch_mn_major(const MnMajorCall& call, cudaStream_t stream) {
  with_tile<kMnMajorTiles>(call.tile, [&]<int tile>(std::integral_constant<int, tile>) {
    using Config = MnMajorConfig<tile>;
    const MemberMap &x = Config::x_is_n ? call.b : call.a, &y = Config::x_is_n ? call.a : call.b;
    start_mn_major<Config, MatrixLoader<Config>>({x.first, y.first, x.others, y.others}, call.result,
                                                 call.schedule, call.blocks, call.members, stream);
  });
}

}  // namespace convoy::kernels::gemm
