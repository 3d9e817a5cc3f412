// The wgmma rung's kernels for tf32 with neither operand's k contiguous.
#include "kernels/gemm/sm90_launch.cuh"
#include "kernels/gemm/sm90_mn_major.cuh"

namespace convoy::kernels::gemm {
namespace {

template <class Config>
struct MnMajorLoader {
  struct Parameters {
    CUtensorMap x, y;
  };
  __device__ static void prefetch(const Parameters& parameters) {
    sm90::prefetch_tensor_map(&parameters.x);
    sm90::prefetch_tensor_map(&parameters.y);
  }
  __device__ static void load(const Parameters& parameters, std::uint8_t* x, std::uint8_t* y,
                              std::uint64_t* full, int x_tile, int y_tile, int k_block) {
#pragma unroll
    for (int i = 0; i < Config::x; i += 32)
      sm90::load_2d(&parameters.x, x + i * 128, full, x_tile * Config::x + i, k_block * Config::depth);
#pragma unroll
    for (int i = 0; i < Config::y; i += 32)
      sm90::load_2d(&parameters.y, y + i * 128, full, y_tile * Config::y + i, k_block * Config::depth);
  }
};

template <int tile>
void start(const MnMajorCall& call, cudaStream_t stream) {
  constexpr Sm90Tile kTile = kMnMajorTiles[tile];
  constexpr bool kTurned = is_turned(kTile);
  using Config = MnMajorConfig<std::max(kTile.rows, kTile.columns), std::min(kTile.rows, kTile.columns)>;
  using Loader = MnMajorLoader<Config>;
  start_early<Config::threads, Config::shared_bytes>(
      mn_major_kernel<Config, Loader, MatrixResult>, call.blocks, 1, stream,
      typename Loader::Parameters{kTurned ? call.b : call.a, kTurned ? call.a : call.b}, call.result,
      call.schedule, kTurned);
}

}  // namespace

void sm90_launch_mn_major(const MnMajorCall& call, cudaStream_t stream) {
  [&]<int... tile>(std::integer_sequence<int, tile...>) {
    ((call.tile == tile ? start<tile>(call, stream) : void()), ...);
  }
  (std::make_integer_sequence<int, int(std::size(kMnMajorTiles))>{});
}

}  // namespace convoy::kernels::gemm
