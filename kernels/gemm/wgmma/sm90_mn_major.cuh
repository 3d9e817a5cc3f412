// The wgmma kernel for tf32 operands whose k is not contiguous, as in gradients of weights. The
// instruction takes such an operand from registers, but not from shared memory. A tile has a longer
// side x and a shorter side y. TMA loads stages of 32 values of k. Two warps transpose the boxes of
// y in place. Two warpgroups read x into registers and multiply. Device code, sm_90a only.
//
// The values of k may be summed in any order, as long as x and y have the same order. The order is
// chosen so that accesses to shared memory are wide and have no bank conflicts, and so that a lane
// gets neighbouring elements of a row of C.
#pragma once

#include "kernels/device/cuda_members.cuh"
#include "kernels/gemm/wgmma/sm90_launch.cuh"
#include "kernels/gemm/wgmma/sm90_mn_major.h"

namespace convoy::kernels::gemm {

template <int tile>
struct MnMajorConfig {
  static constexpr bool x_is_n = gemm::x_is_n(kMnMajorTiles[tile]);
  static constexpr int x = std::max(kMnMajorTiles[tile].rows, kMnMajorTiles[tile].columns),
                       y = std::min(kMnMajorTiles[tile].rows, kMnMajorTiles[tile].columns);
  static constexpr int depth = 32, steps = 4, box_bytes = depth * 128;
  static constexpr int turners = 2, consumer_warps = 8;
  // The loaders load x as their A, even if x is B of the product.
  static constexpr bool a_mn_major = true, b_mn_major = true;
  static constexpr int rows = x, columns = y, cluster = 1;
  static constexpr int b_width = depth;  // the columns of a TMA box of B
  // The number of 64-row blocks of x that a consumer warpgroup multiplies.
  static constexpr int row_blocks = x / 2 / 64;
  static constexpr int run = 2 * row_blocks;  // how many neighbouring rows of x a lane holds
  static constexpr int warp_x = 8 * run;
  static constexpr int x_bytes = x * 128, stage_bytes = x_bytes + y * 128;
  static constexpr int barrier_bytes = 256, limit = 227 * 1024 - 1024;
  static constexpr int stages = std::min(8, (limit - barrier_bytes) / stage_bytes);
  static constexpr int shared_bytes = stages * stage_bytes + barrier_bytes + 1024;
  static constexpr int threads = 384;
  // Registers per thread; at the start all threads have 168. The producer's warps keep 104, because
  // some of them transpose in registers.
  static constexpr int producer_registers = 104, consumer_registers = 200;
  static_assert(128 * producer_registers + 256 * consumer_registers <= threads * 168);
  static_assert(stages >= 3 && stages * 24 <= barrier_bytes);
  static_assert(x % 128 == 0 && y % (32 * turners) == 0 && row_blocks * y / 2 <= 128, "accumulators spill");
};

// Transposes a box of y, [32 of k][32 columns], so that a row has all k of one column. In a row, k
// has the order in which lanes read x. Columns are permuted so that the accumulators of a lane
// belong to four neighbouring columns.
__device__ inline void turn_box(std::uint8_t* box, int lane) {
  const int chunk = lane % 8;  // the 16 bytes that this lane writes of each transposed row
  const int mixed = (chunk * 2 & 7) | chunk / 4;
  float4 from[2][4];
#pragma unroll
  for (int half = 0; half < 2; ++half)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int k = chunk / 2 * 8 + i * 2 + chunk % 2, columns = mixed ^ (lane / 8 + half * 4);
      from[half][i] = *reinterpret_cast<const float4*>(box + k * 128 + ((columns ^ k % 8) << 4));
    }
  __syncwarp();
  const auto put = [&](int row, float a, float b, float c, float d) {
    *reinterpret_cast<float4*>(box + row * 128 + ((chunk ^ row % 8) << 4)) = make_float4(a, b, c, d);
  };
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int columns = mixed ^ (lane / 8 + half * 4), row = columns / 4 * 16 + columns % 4 * 2;
    const auto& of = from[half];
    put(row, of[0].x, of[1].x, of[2].x, of[3].x);
    put(row + 1, of[0].y, of[1].y, of[2].y, of[3].y);
    put(row + 8, of[0].z, of[1].z, of[2].z, of[3].z);
    put(row + 9, of[0].w, of[1].w, of[2].w, of[3].w);
  }
}

// The values of x that a lane passes to one instruction: two rows of each 64-row block, at two
// values of k.
template <int row_blocks>
using Fragments = std::uint32_t[row_blocks][4];

// Reads a lane's values of x for one instruction, from byte `from` of the stage on.
template <int row_blocks>
__device__ inline void read_fragments(Fragments<row_blocks>& words, const std::uint8_t* stage, int from) {
  using Run = std::conditional_t<row_blocks == 2, uint4, uint2>;
  static_assert(row_blocks == 1 || row_blocks == 2);
  const Run first = *reinterpret_cast<const Run*>(stage + from);
  const Run second = *reinterpret_cast<const Run*>(stage + (from ^ 16) + 128);
  words[0][0] = first.x, words[0][1] = first.y, words[0][2] = second.x, words[0][3] = second.y;
  if constexpr (row_blocks == 2)
    words[1][0] = first.z, words[1][1] = first.w, words[1][2] = second.z, words[1][3] = second.w;
}

template <class Config>
using MnMajorSums = float[Config::row_blocks][Config::y / 2];

// Multiplies one work item (TileScheduler). A step is one instruction and has 8 values of k. While
// the products of a step run, x is read for later steps.
template <class Config>
__device__ inline void multiply_mn_major(MnMajorSums<Config>& sums, RingPosition<Config::stages>& position,
                                         const std::uint8_t* ring, std::uint64_t* full, std::uint64_t* ready,
                                         std::uint64_t* empty, int from, int k_count, int lane) {
  using Instruction = sm90::Wgmma<Config::y>;
  Fragments<Config::row_blocks> fragments[Config::steps] = {};
  int previous = position.stage;
  for (int k = 0; k < k_count; ++k) {
    sm90::barrier_wait(full + position.stage, position.parity);
    sm90::barrier_wait(ready + position.stage, position.parity);
    const std::uint8_t* x = ring + position.stage * Config::stage_bytes;
    const std::uint64_t descriptor = sm90::matrix_descriptor<128>(x + Config::x_bytes, 8192);
#pragma unroll
    for (int step = 0; step < Config::steps; ++step) {
      sm90::wgmma_wait<Config::steps - 1>();
      sm90::keep(fragments[step]);
      if (step == Config::steps - 1 && k > 0) release_stage<1>(empty + previous, lane);
      read_fragments<Config::row_blocks>(fragments[step], x + step * 1024, from);
      sm90::wgmma_fence();
#pragma unroll
      for (int block = 0; block < Config::row_blocks; ++block)
        Instruction::tf32(sums[block], fragments[step][block], descriptor + ((step * 32) >> 4),
                          k > 0 || step > 0);
      sm90::wgmma_commit();
    }
    previous = position.stage;
    position.advance();
  }
  sm90::wgmma_wait<0>();
#pragma unroll
  for (int step = 0; step < Config::steps; ++step) sm90::keep(fragments[step]);
  release_stage<1>(empty + previous, lane);
}

// Stores a lane's sums. `x` and `y` are the position in C of the lane's first sum, along the tile's
// sides x and y.
template <class Config, class Target>
__device__ inline void store_mn_major(const MnMajorSums<Config>& sums, const Target& target, int x, int y) {
  const auto at = [&](int i, int four, int j) {
    return sums[i / 2][(four * 2 + j / 2) * 4 + i % 2 * 2 + j % 2];
  };
  if constexpr (Config::x_is_n) {
#pragma unroll
    for (int four = 0; four < Config::y / 16; ++four)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        float run[Config::run];
#pragma unroll
        for (int i = 0; i < Config::run; ++i) run[i] = at(i, four, j);
        target.store(run, y + four * 16 + j, x);
      }
  } else {
#pragma unroll
    for (int four = 0; four < Config::y / 16; ++four)
#pragma unroll
      for (int i = 0; i < Config::run; ++i) {
        const float run[4] = {at(i, four, 0), at(i, four, 1), at(i, four, 2), at(i, four, 3)};
        target.store(run, x + i, y + four * 16);
      }
  }
}

// Multiplies all work items (TileScheduler). Loader is one of the loaders of wgmma_kernel; its A is
// the side x of the tile. Result stores the sums of each split.
template <class Config, class Loader, class Result>
__global__ __launch_bounds__(Config::threads, 1) void mn_major_kernel(const __grid_constant__
                                                                      typename Loader::Parameters loader,
                                                                      const __grid_constant__ Result result,
                                                                      const TileScheduler schedule,
                                                                      std::ptrdiff_t member_stride) {
  // Shared memory holds, in this order, the stages and the barriers.
  extern __shared__ std::uint8_t unaligned[];
  std::uint8_t* ring = unaligned + (-sm90::shared_address(unaligned) & 1023u);
  auto* full = reinterpret_cast<std::uint64_t*>(ring + Config::stages * Config::stage_bytes);
  std::uint64_t *ready = full + Config::stages, *empty = ready + Config::stages;
  const int warp = __shfl_sync(~0u, int(threadIdx.x) / 32, 0), lane = int(threadIdx.x) % 32;
  // Prefetch tensor maps and initialise barriers.
  if (threadIdx.x == 32) Loader::prefetch(loader, int(blockIdx.z));
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < Config::stages; ++stage) {
      sm90::barrier_init(full + stage, 1);
      sm90::barrier_init(ready + stage, Config::turners);
      sm90::barrier_init(empty + stage, Config::consumer_warps);
    }
    sm90::barrier_init_fence();
  }
  __syncthreads();
  // Programmatic dependent launch: this kernel may start before earlier kernels end, so nothing
  // above may read their results.
  sm90::launch_dependents();
  sm90::wait_for_prerequisites();

  const auto x_tile = [](const TileScheduler::WorkItem& item) {
    return Config::x_is_n ? item.n_tile : item.m_tile;
  };
  const auto y_tile = [](const TileScheduler::WorkItem& item) {
    return Config::x_is_n ? item.m_tile : item.n_tile;
  };
  RingPosition<Config::stages> position;
  if (warp < 4) {
    sm90::registers_decrease<Config::producer_registers>();
    if (threadIdx.x == 0) {
      // Producer: wait until a stage is free, then issue its loads.
      for (int index = int(blockIdx.x); index < schedule.work_items(); index += int(gridDim.x)) {
        const TileScheduler::WorkItem item = schedule.at(index);
        Loader item_loader(loader, int(blockIdx.z), x_tile(item), y_tile(item), item.k_begin);
#pragma unroll 1
        for (int k = item.k_begin; k < item.k_end; ++k, position.advance()) {
          sm90::barrier_wait(empty + position.stage, position.parity ^ 1);
          sm90::barrier_expect(full + position.stage, Config::stage_bytes);
          std::uint8_t* x = ring + position.stage * Config::stage_bytes;
          item_loader.load(x, x + Config::x_bytes, full + position.stage);
        }
      }
    } else if (warp > 0 && warp <= Config::turners) {
      // Transposing warps: wait for a stage, transpose its y in place, tell the consumers that it
      // is ready.
      for (int index = int(blockIdx.x); index < schedule.work_items(); index += int(gridDim.x)) {
        const TileScheduler::WorkItem item = schedule.at(index);
        for (int k = item.k_begin; k < item.k_end; ++k, position.advance()) {
          sm90::barrier_wait(full + position.stage, position.parity);
          std::uint8_t* y = ring + position.stage * Config::stage_bytes + Config::x_bytes;
          for (int box = warp - 1; box < Config::y / 32; box += Config::turners)
            turn_box(y + box * Config::box_bytes, lane);
          sm90::async_proxy_fence();
          __syncwarp();
          if (lane == 0) sm90::barrier_arrive(ready + position.stage);
        }
      }
    }
    return;
  }

  // Consumers: multiply each work item, then store it.
  sm90::registers_increase<Config::consumer_registers>();
  const int first_x = (warp - 4) * Config::warp_x + lane / 4 * Config::run;
  const int from = first_x / 32 * Config::box_bytes + lane % 4 * 256 +
                   ((first_x % 32 / 4 ^ lane % 4 * 2) << 4) + first_x % 4 * 4;
  for (int index = int(blockIdx.x); index < schedule.work_items(); index += int(gridDim.x)) {
    const TileScheduler::WorkItem item = schedule.at(index);
    MnMajorSums<Config> sums;
    multiply_mn_major<Config>(sums, position, ring, full, ready, empty, from, item.k_end - item.k_begin,
                              lane);
    const int x = x_tile(item) * Config::x + first_x, y = y_tile(item) * Config::y + lane % 4 * 4;
    const std::ptrdiff_t offset = member_stride * blockIdx.z;
    result.with_split(item.split, offset,
                      [&](const auto& place) { store_mn_major<Config>(sums, place, x, y); });
  }
}

// Starts the kernel of one tile shape.
template <class Config, class Loader, class Result>
void start_mn_major(const typename Loader::Parameters& loader, const Result& result,
                    const TileScheduler& schedule, int blocks, MemberLayout members, cudaStream_t stream) {
  start_early<Config::threads, Config::shared_bytes>(mn_major_kernel<Config, Loader, Result>,
                                                     dim3(unsigned(blocks), 1, unsigned(members.count)), 1,
                                                     stream, loader, result, schedule, members.stride);
}

}  // namespace convoy::kernels::gemm
