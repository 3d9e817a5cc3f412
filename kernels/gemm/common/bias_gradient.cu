#include <bit>

#include "kernels/device/cuda_launch.cuh"
#include "kernels/gemm/common/bias_gradient.h"

namespace convoy::kernels::gemm {
namespace {

using cuda::ceil_div;

constexpr int kThreads = 256, kMostAcross = 32;
constexpr int kLoads = 8;  // rows that a thread loads at once

// Divides a matrix among blocks. A pack is 16 bytes of neighbouring columns. A block reads `across`
// packs (a power of two) in `down` rows at a time. `tiles` blocks cover the columns, and `slices`
// blocks divide the rows among themselves.
struct Cut {
  int across, down;
  std::int64_t tiles, slices;
};
Cut cut_of(DType type, std::int64_t rows, std::int64_t columns) {
  const std::int64_t packs =
      cuda::with_packing(type, {columns}, [&](auto packing) { return columns / packing.kWidth; });
  const int across = int(std::min<std::int64_t>(std::bit_ceil(std::uint64_t(packs)), kMostAcross));
  const int down = kThreads / across;
  const std::int64_t tiles = ceil_div(packs, across);
  const std::int64_t most = std::max<std::int64_t>(4 * cuda::kMultiprocessors / tiles, 1);
  return {across, down, tiles, std::clamp<std::int64_t>(ceil_div(rows, down * kLoads), 1, most)};
}

// Adds up the rows of each slice and writes the sums to partial[slice][columns]. Groups of `down`
// rows are dealt out to the slices in turn.
template <typename T, int V>
__global__ void __launch_bounds__(kThreads)
    sum_slices(const T* dy, std::int64_t rows, std::int64_t columns, int across, float* partial,
               std::ptrdiff_t member_stride) {
  cuda::move_to_member(member_stride, dy, partial);
  __shared__ float shared[kThreads * V];
  const int x = int(threadIdx.x) & (across - 1), y = int(threadIdx.x) / across, down = kThreads / across;
  const std::int64_t first = std::int64_t{blockIdx.x} * across * V, column = first + x * V;
  const std::int64_t stride = std::int64_t{gridDim.y} * down;
  float sum[V] = {};
  if (column < columns) {
    for (std::int64_t row = std::int64_t{blockIdx.y} * down + y; row < rows; row += kLoads * stride) {
      cuda::Pack<T, V> packs[kLoads];
#pragma unroll
      for (int i = 0; i < kLoads; ++i)
        packs[i] = row + i * stride < rows ? cuda::load_pack<V>(dy + (row + i * stride) * columns + column)
                                           : cuda::zero_pack<T, V>();
#pragma unroll
      for (int i = 0; i < kLoads; ++i) {
        float values[V];
        cuda::unpack(packs[i], values);
#pragma unroll
        for (int v = 0; v < V; ++v) sum[v] += values[v];
      }
    }
  }
#pragma unroll
  for (int v = 0; v < V; ++v) shared[int(threadIdx.x) * V + v] = sum[v];
  __syncthreads();
  for (int i = int(threadIdx.x); i < across * V && first + i < columns; i += kThreads) {
    float total = 0;
    for (int other = 0; other < down; ++other) total += shared[other * across * V + i];
    partial[std::int64_t{blockIdx.y} * columns + first + i] = total;
  }
}

constexpr int kLanes = 32;  // threads per column; each adds every 32nd slice

__global__ void __launch_bounds__(32 * kLanes)
    add_slices(const float* partial, int slices, std::int64_t columns, float* dbias,
               std::ptrdiff_t member_stride) {
  cuda::move_to_member(member_stride, partial, dbias);
  __shared__ float shared[kLanes][32];
  const std::int64_t column = std::int64_t{blockIdx.x} * 32 + threadIdx.x;
  float sum = 0;
  if (column < columns)
#pragma unroll 8
    for (int slice = int(threadIdx.y); slice < slices; slice += kLanes)
      sum += partial[slice * columns + column];
  shared[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= columns) return;
#pragma unroll
  for (int i = 1; i < kLanes; ++i) sum += shared[i][threadIdx.x];
  dbias[column] = sum;
}

}  // namespace

std::size_t bias_gradient_workspace(DType type, std::int64_t rows, std::int64_t columns) {
  return std::size_t(cut_of(type, rows, columns).slices) * std::size_t(columns) * sizeof(float);
}

void bias_gradient(DType type, const void* dy, std::int64_t rows, std::int64_t columns, float* dbias,
                   void* workspace, Stream stream, MemberLayout members) {
  const Cut cut = cut_of(type, rows, columns);
  auto* partial = static_cast<float*>(workspace);
  cuda::with_packing(type, {columns}, [&](auto packing) {
    using P = decltype(packing);
    using T = typename P::Type;
    cuda::launch(sum_slices<T, P::kWidth>, dim3(unsigned(cut.tiles), unsigned(cut.slices)), kThreads, stream,
                 members, static_cast<const T*>(dy), rows, columns, cut.across, partial);
  });
  const dim3 lanes(32, kLanes);
  cuda::launch(add_slices, unsigned(ceil_div(columns, 32)), lanes, stream, members, partial, int(cut.slices),
               columns, dbias);
}

}  // namespace convoy::kernels::gemm
