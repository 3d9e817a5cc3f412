// The wgmma rung's kernels for tf32 with neither operand's k contiguous.
#include "kernels/gemm/sm90_launch.cuh"
#include "kernels/gemm/sm90_mn_major.cuh"

namespace convoy::kernels::gemm {
namespace {

// Rows that the copy engine cannot read come in together with their neighbours, as one longer row: of a stage first all
// that stand first in theirs, then the second. Both operands must do so, for they must agree on the order of k. What such a
// box reads beyond its own row is of no column that is stored.
template <class Config>
struct MnMajorLoader {
  struct Parameters {
    MnMajorOperand x, y;
    int together;
  };
  __device__ static void prefetch(const Parameters& parameters) {
    sm90::prefetch_tensor_map(&parameters.x.map);
    sm90::prefetch_tensor_map(&parameters.y.map);
  }
  __device__ static void load(const Parameters& p, std::uint8_t* x, std::uint8_t* y, std::uint64_t* full,
                              int x_tile, int y_tile, int k_block) {
    const int rows = Config::depth / p.together;
    for (int row = 0; row < p.together; ++row) {
      load_boxes<Config::x>(p.x, x, full, x_tile, k_block * rows, row, rows);
      load_boxes<Config::y>(p.y, y, full, y_tile, k_block * rows, row, rows);
    }
  }

 private:
  template <int extent>
  __device__ static void load_boxes(const MnMajorOperand& operand, std::uint8_t* to, std::uint64_t* full,
                                    int tile, int k, int row, int rows) {
#pragma unroll
    for (int i = 0; i < extent; i += 32)
      sm90::load_2d(&operand.map, to + i * 128 + row * rows * 128, full,
                    row * operand.pitch + tile * extent + i, k);
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
      typename Loader::Parameters{kTurned ? call.b : call.a, kTurned ? call.a : call.b, call.together},
      call.result, call.schedule, kTurned);
}

}  // namespace

void sm90_launch_mn_major(const MnMajorCall& call, cudaStream_t stream) {
  [&]<int... tile>(std::integer_sequence<int, tile...>) {
    ((call.tile == tile ? start<tile>(call, stream) : void()), ...);
  }
  (std::make_integer_sequence<int, int(std::size(kMnMajorTiles))>{});
}

}  // namespace convoy::kernels::gemm
