// The im2col engine's kernels of backward_weights, tf32. wgmma takes tf32 operands with k contiguous alone, and here k runs
// over positions. So the copy engine fills the stages as it does for bf16, and eight warps multiply by mma.sync, which
// takes its fragments from registers: any order will do.
//
// A stage holds 32 positions, one to a row of 128 bytes, of 32 filters or channels a box, in the 128-byte swizzle. Lane l
// reads positions 2 (l % 4) and 2 (l % 4) + 1 of every eight where the instruction expects l % 4 and l % 4 + 4: the order
// within a sum is free, as long as both operands have the same, and in this one the 32 lanes meet 32 banks.
#include "kernels/conv2d/sm90_im2col.cuh"
#include "kernels/gemm/mma_sync.cuh"

namespace convoy::kernels::conv {
namespace {

template <int rows_, int columns_>
struct GradientConfig {
  static constexpr int rows = rows_, columns = columns_, depth = 32, steps = 4;
  static constexpr int warps_down = 2, warps_across = 4;
  static constexpr int warp_rows = rows / warps_down, warp_columns = columns / warps_across;
  static constexpr int a_bytes = rows * 128, stage_bytes = a_bytes + columns * 128;
  static constexpr int barrier_bytes = 256, limit = 227 * 1024 - 1024;
  static constexpr int stages = std::min(8, (limit - barrier_bytes) / stage_bytes);
  static constexpr int shared_bytes = stages * stage_bytes + barrier_bytes + 1024;
  static constexpr int threads = 384, readers = 8;
  static_assert(stages >= 3 && stages * 16 <= barrier_bytes);
  static_assert(warp_rows % 16 == 0 && warp_columns % 8 == 0 && rows % 32 == 0 && columns % 32 == 0);
};

struct GradientOut {
  float* data;  // [pieces][K][taps][C]
  int k, taps, c;
  cuda::Divider blocks;  // of 32 channels a tap

  // The first of two columns; they are of one tap.
  __device__ void store(float first, float second, int row, int column, int split) const {
    const std::uint32_t block = std::uint32_t(column) / 32, tap = blocks(block);
    const int channel = int(block - tap * blocks.divisor) * 32 + column % 32;
    if (row >= k || int(tap) >= taps || channel >= c) return;
    const std::int64_t index = ((std::int64_t{split} * k + row) * taps + tap) * c + channel;
    *reinterpret_cast<float2*>(data + index) = make_float2(first, second);
  }
};

// Where a lane finds element l / 4 of each eight from `first8` on: of the first four eights, in bytes from the side's start.
class Eights {
 public:
  __device__ Eights(int first8, int lane) {
    const int g = lane / 4, t = lane % 4;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int eight = first8 + i;
      offset_[i] = eight / 4 * 4096 + t * 256 + ((eight % 4 ^ t) << 5) + (g / 4 << 4) + (g % 4 << 2);
    }
  }
  // Of the first or second of the lane's positions in step `step`.
  template <int second>
  __device__ gemm::Word load(const std::uint8_t* side, int eight, int step) const {
    const int offset = second ? (offset_[eight % 4] ^ 16) + 128 : offset_[eight % 4];
    return *reinterpret_cast<const gemm::Word*>(side + offset + eight / 4 * 4096 + step * 1024);
  }

 private:
  int offset_[4];
};

template <class Config>
__global__ __launch_bounds__(Config::threads,
                             1) void gradient_kernel(const __grid_constant__ LoaderParameters loader,
                                                     const GradientOut out, const gemm::Schedule schedule) {
  extern __shared__ std::uint8_t unaligned[];
  std::uint8_t* ring = unaligned + (-sm90::shared_address(unaligned) & 1023u);
  auto* full = reinterpret_cast<std::uint64_t*>(ring + Config::stages * Config::stage_bytes);
  std::uint64_t* empty = full + Config::stages;
  const int warpgroup = __shfl_sync(~0u, int(threadIdx.x) / 128, 0);
  if (threadIdx.x == 32) GradientLoader<Config>::prefetch(loader);
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < Config::stages; ++stage) {
      sm90::barrier_init(full + stage, 1);
      sm90::barrier_init(empty + stage, Config::readers);
    }
    sm90::barrier_init_fence();
  }
  __syncthreads();
  sm90::launch_dependents();
  sm90::wait_for_prerequisites();

  gemm::RingPosition<Config::stages> position;
  if (warpgroup == 0) {
    sm90::registers_decrease<40>();
    if (threadIdx.x > 0) return;
    for (int index = int(blockIdx.x); index < schedule.pieces(); index += int(gridDim.x)) {
      const gemm::Schedule::Piece piece = schedule.at(index);
      for (int k = piece.k_begin; k < piece.k_end; ++k) {
        sm90::barrier_wait(empty + position.stage, position.parity ^ 1);
        std::uint64_t* arrived = full + position.stage;
        sm90::barrier_expect(arrived, Config::stage_bytes);
        std::uint8_t* stage = ring + position.stage * Config::stage_bytes;
        GradientLoader<Config>::load(loader, stage, stage + Config::a_bytes, arrived, piece.m_tile,
                                     piece.n_tile, k, 0);
        position.advance();
      }
    }
    return;
  }

  sm90::registers_increase<232>();
  const int warp = int(threadIdx.x) / 32 - 4, lane = int(threadIdx.x) % 32;
  const int row = warp / Config::warps_across * Config::warp_rows,
            column = warp % Config::warps_across * Config::warp_columns;
  constexpr int kDown = Config::warp_rows / 16, kAcross = Config::warp_columns / 8;
  const Eights rows(row / 8, lane), columns(column / 8, lane);
  for (int index = int(blockIdx.x); index < schedule.pieces(); index += int(gridDim.x)) {
    const gemm::Schedule::Piece piece = schedule.at(index);
    float sums[kDown][kAcross][4] = {};
    for (int k = piece.k_begin; k < piece.k_end; ++k) {
      sm90::barrier_wait(full + position.stage, position.parity);
      const std::uint8_t* a = ring + position.stage * Config::stage_bytes;
      const std::uint8_t* b = a + Config::a_bytes;
#pragma unroll
      for (int step = 0; step < Config::steps; ++step) {
        gemm::Word of_a[kDown][4], of_b[kAcross][2];
#pragma unroll
        for (int i = 0; i < kDown; ++i) {
          of_a[i][0] = rows.load<0>(a, 2 * i, step), of_a[i][1] = rows.load<0>(a, 2 * i + 1, step);
          of_a[i][2] = rows.load<1>(a, 2 * i, step), of_a[i][3] = rows.load<1>(a, 2 * i + 1, step);
        }
#pragma unroll
        for (int j = 0; j < kAcross; ++j)
          of_b[j][0] = columns.load<0>(b, j, step), of_b[j][1] = columns.load<1>(b, j, step);
#pragma unroll
        for (int i = 0; i < kDown; ++i)
#pragma unroll
          for (int j = 0; j < kAcross; ++j)
            gemm::multiply_tile<float>(sums[i][j], of_a[i], of_b[j][0], of_b[j][1]);
      }
      __syncwarp();
      gemm::release_stage<1>(empty + position.stage, lane);
      position.advance();
    }
#pragma unroll
    for (int i = 0; i < kDown; ++i)
#pragma unroll
      for (int j = 0; j < kAcross; ++j)
#pragma unroll
        for (int half = 0; half < 2; ++half)
          out.store(sums[i][j][half * 2], sums[i][j][half * 2 + 1],
                    piece.m_tile * Config::rows + row + i * 16 + half * 8 + lane / 4,
                    piece.n_tile * Config::columns + column + j * 8 + lane % 4 * 2, piece.split);
  }
}

template <int tile>
void start_tile(const Sm90ConvCall& call, cudaStream_t stream) {
  using Config = GradientConfig<gemm::kCopiedTiles[tile].rows, gemm::kCopiedTiles[tile].columns>;
  gemm::start_early<Config::threads, Config::shared_bytes>(
      gradient_kernel<Config>, call.blocks, 1, stream,
      LoaderParameters{call.images, call.other, call.window, call.filter_taps},
      GradientOut{call.gradient, call.m, call.taps, call.channels, call.window.blocks}, call.schedule);
}

}  // namespace

void sm90_conv_backward_weights_tf32(const Sm90ConvCall& call, cudaStream_t stream) {
  [&]<int... tile>(std::integer_sequence<int, tile...>) {
    ((call.tile == tile ? start_tile<tile>(call, stream) : void()), ...);
  }
  (std::make_integer_sequence<int, int(std::size(gemm::kCopiedTiles))>{});
}

}  // namespace convoy::kernels::conv
