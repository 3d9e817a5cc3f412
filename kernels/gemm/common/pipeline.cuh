// Code that mma_sync and register_tiles share. These kernel families copy operands by cp.async.
// Here are the copies, the order of tiles, and the choice of plans on the host.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <tuple>
#include <vector>

#include "kernels/gemm/common/epilogue.cuh"
#include "kernels/gemm/rungs.h"

namespace convoy::kernels::gemm {

// Starts a copy of `bytes` bytes to shared memory. The bytes after them, up to `size`, become zero.
template <int size>
__device__ inline void copy_async(void* to, const void* from, int bytes) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
  if constexpr (size == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(bytes)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(address), "l"(from), "r"(bytes),
                 "n"(size)
                 : "memory");
}
template <int size>
__device__ inline void copy_async(void* to, const void* from) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
  if constexpr (size == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(address), "l"(from), "n"(size) : "memory");
}
__device__ inline void copies_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int pending>
__device__ inline void copies_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

// The order in which blocks compute tiles. A band is a few rows of tiles. Blocks walk through a
// band column by column, so that blocks that run at the same time share operands in L2. All tiles
// of one split of k come before those of the next split.
struct TileOrder {
  static constexpr int kBand = 8;
  std::int64_t tile_rows, tile_columns;
  int splits;
  std::int64_t piece;  // how many values of k a split has, a multiple of the depth of a stage
  std::int64_t partial_pitch;

  struct Position {
    std::int64_t row, column;
    int split;
  };
  std::int64_t blocks() const { return tile_rows * tile_columns * splits; }
  __device__ Position at(std::int64_t block) const {
    const std::int64_t tiles = tile_rows * tile_columns, tile = block % tiles;
    const std::int64_t band = tile / (kBand * tile_columns), first = band * kBand;
    const std::int64_t height = tile_rows - first < kBand ? tile_rows - first : kBand;
    const std::int64_t inside = tile - band * kBand * tile_columns;
    return {first + inside % height, inside / height, int(block / tiles)};
  }
  __device__ std::int64_t k_begin(int split) const { return split * piece; }
  __device__ std::int64_t k_end(int split, std::int64_t k) const {
    const std::int64_t end = (split + 1) * piece;
    return end < k ? end : k;
  }
};

inline TileOrder tile_order(const Problem& p, int rows, int columns, int depth, int splits) {
  const std::int64_t blocks = ceil_div(p.k, depth);
  return {ceil_div(p.m, rows), ceil_div(p.n, columns), splits, ceil_div(blocks, splits) * depth,
          partial_pitch(p)};
}

// Returns plans, sorted by cost(tile, splits), the expected time in microseconds. For each tile
// shape, there are plans with the three cheapest numbers of splits.
inline std::vector<Plan> tile_candidates(Rung rung, int shapes, const Problem& p, int least_k,
                                         const std::function<double(int, int)>& cost,
                                         const std::function<std::int64_t(int)>& tiles,
                                         const std::function<std::size_t(int)>& workspace) {
  std::vector<std::pair<double, Plan>> scored;
  for (int tile = 0; tile < shapes; ++tile) {
    std::vector<std::pair<double, Plan>> own;
    for (int splits = 1; splits <= 1024; ++splits) {
      if (splits > 1 && (tiles(tile) * splits > 8 * device_facts().multiprocessors || p.k / splits < least_k))
        break;
      own.push_back({cost(tile, splits), {rung, tile, splits, workspace(splits)}});
    }
    std::stable_sort(own.begin(), own.end(), [](auto& a, auto& b) { return a.first < b.first; });
    own.resize(std::min<std::size_t>(own.size(), 3));
    scored.insert(scored.end(), own.begin(), own.end());
  }
  std::stable_sort(scored.begin(), scored.end(), [](auto& a, auto& b) { return a.first < b.first; });
  std::vector<Plan> plans;
  for (const auto& one : scored) plans.push_back(one.second);
  return plans;
}

// The workspace of a plan: partial sums if k is split, and slots of column sums (rungs.h). If
// `base` is null, the pointers mean nothing, but `bytes` is right.
struct TileWorkspace {
  float *partial, *slots;
  std::size_t bytes;
};
inline TileWorkspace tile_workspace(const Problem& p, int splits, void* base) {
  Carver carver(base);
  auto* partial = carver.take<float>(splits == 1 ? 0 : partial_elements(p, splits));
  auto* slots = carver.take<float>(p.column_sums ? slot_elements(p.n, kSumSlots) : 0);
  return {partial, slots, carver.used()};
}

inline void finish_tiles(const Problem& p, const Plan& plan, const Epilogue& epilogue, const float* partial,
                         float* slots, const Buffers& buffers, cudaStream_t stream) {
  if (plan.splits > 1)
    sum_partials(epilogue, partial, plan.splits, p.m, p.n, partial_pitch(p), stream, buffers.members);
  if (!p.column_sums) return;
  sum_columns(epilogue, p.m, p.n, slots, stream, buffers.members);
  sum_slots(slots, kSumSlots, p.n, buffers.column_sums, stream, buffers.members);
}

}  // namespace convoy::kernels::gemm
