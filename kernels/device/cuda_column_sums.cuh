// Adds up the rows of a matrix, so that each column (channel) gets one sum. A first launch writes
// one partial sum per block to the workspace. A second launch adds these. The order of additions
// depends on the shape only, so results always have the same bits. While it reads the matrix, the
// first launch may also write a result for each element.
#pragma once

#include <algorithm>

#include "kernels/device/cuda_launch.cuh"

namespace convoy::kernels::cuda {

inline constexpr int kSumThreads = 256;
inline constexpr int kMostSumLanes = 32;

// The grid for `segments` matrices of `rows` x `channels`, one after the other in memory. Each
// matrix (segment) gets sums of its own.
struct SumGrid {
  std::int64_t segments, rows;
  int channels;
  // lanes: how many packs of a row one block reads, a power of two. shift: its logarithm.
  int lanes, shift;
  int tiles;       // blocks that cover all channels of a row
  int height;      // rows that a block reads at the same time
  int row_blocks;  // blocks that divide the rows of one segment

  unsigned blocks() const { return static_cast<unsigned>(segments * row_blocks * tiles); }
  std::int64_t partials(int sums) const { return segments * row_blocks * sums * channels; }
  std::size_t partial_bytes(int sums) const {
    return static_cast<std::size_t>(partials(sums)) * sizeof(float);
  }
};

// Returns the grid for threads that read packs of `width` channels. `width` is 1 if the channels do
// not fill whole packs.
inline SumGrid sum_grid(std::int64_t segments, std::int64_t rows, std::int64_t channels, int width) {
  constexpr int kRowsAThread = 4, kMostBlocks = 8 * kMultiprocessors;
  SumGrid grid{segments, rows, static_cast<int>(channels), 1, 0, 0, 0, 0};
  const std::int64_t packs = channels / width;
  // A block is one cache line (eight packs) wide, or half of one if that leaves fewer threads idle.
  // Without whole packs it is one warp wide.
  const int widest = width == 1 ? 32 : ceil_div(packs, 8) * 8 == ceil_div(packs, 4) * 4 ? 8 : 4;
  while (grid.lanes < widest && grid.lanes < packs) grid.lanes *= 2, ++grid.shift;
  grid.tiles = static_cast<int>(ceil_div(packs, grid.lanes));
  grid.height = kSumThreads / grid.lanes;
  const std::int64_t most = std::max<std::int64_t>(1, kMostBlocks / (grid.tiles * segments));
  grid.row_blocks =
      static_cast<int>(std::clamp<std::int64_t>(ceil_div(rows, grid.height * kRowsAThread), 1, most));
  return grid;
}

// Returns the grid for the packs that with_packing(type, {channels}) chooses.
inline SumGrid sum_grid(std::int64_t segments, std::int64_t rows, std::int64_t channels, DType type) {
  const int wide = type == DType::bf16 ? kPackWidth<bf16> : kPackWidth<float>;
  return sum_grid(segments, rows, channels, channels % wide == 0 ? wide : 1);
}

template <typename Out, int kSums>
struct SumOutputs {
  Out* to[kSums];  // [segments, channels]
};

template <typename Out>
__device__ __forceinline__ void store_sum(Out* to, double sum) {
  if constexpr (sizeof(Out) == 2)
    *to = __float2bfloat16_rn(static_cast<float>(sum));
  else
    *to = static_cast<Out>(sum);
}

// The kernel of the first launch: adds up columns. A Source, with constants kWidth and kSums,
// supplies the matrix:
//   load(at)         starts reading kWidth neighbouring elements at offset `at`
//   visit(loaded, segment, row, at, channel, sums)
//                    adds the contributions of these elements to sums[kSums][kWidth]
//   each_pointer()   lists its pointers (cuda_members.cuh)
// A thread starts kRowsInFlight loads at once. If a segment has only one block, the kernel writes
// final sums to `out` and not to `partials`.
template <typename Source, typename Out>
__global__ void __launch_bounds__(kSumThreads)
    column_sums(const __grid_constant__ Source source_of_first, const __grid_constant__ SumGrid grid,
                float* partials, const SumOutputs<Out, Source::kSums> out, float factor,
                std::ptrdiff_t member_stride) {
  const Source source = of_member(source_of_first, member_stride);
  partials = of_member(partials, member_stride);
  constexpr int V = Source::kWidth, S = Source::kSums, kRowsInFlight = 4;
  __shared__ float shared[kSumThreads / 32 * kMostSumLanes * S * V];
  const int tx = static_cast<int>(threadIdx.x) & (grid.lanes - 1);
  const int ty = static_cast<int>(threadIdx.x) >> grid.shift;
  const int tile = static_cast<int>(blockIdx.x) % grid.tiles;
  const std::int64_t part = blockIdx.x / grid.tiles, segment = part / grid.row_blocks;
  const int channel = (tile * grid.lanes + tx) * V;
  const std::int64_t rows = channel < grid.channels ? grid.rows : 0;
  const std::int64_t stride = std::int64_t{grid.row_blocks} * grid.height;
  float sums[S][V] = {};
  for (std::int64_t row = (part - segment * grid.row_blocks) * grid.height + ty; row < rows;
       row += kRowsInFlight * stride) {
    typename Source::Loaded loaded[kRowsInFlight];
    const auto offset = [&](int k) {
      return (segment * grid.rows + row + k * stride) * grid.channels + channel;
    };
#pragma unroll
    for (int k = 0; k < kRowsInFlight; ++k)
      if (row + k * stride < rows) loaded[k] = source.load(offset(k));
#pragma unroll
    for (int k = 0; k < kRowsInFlight; ++k)
      if (row + k * stride < rows)
        source.visit(loaded[k], segment, row + k * stride, offset(k), channel, sums);
  }
#pragma unroll
  for (int s = 0; s < S; ++s)
#pragma unroll
    for (int i = 0; i < V; ++i) {
      for (int lane = 16; lane >= grid.lanes; lane /= 2)
        sums[s][i] += __shfl_xor_sync(0xffffffffu, sums[s][i], lane);
      if (static_cast<int>(threadIdx.x) % 32 < grid.lanes)
        shared[(static_cast<int>(threadIdx.x) / 32 * S + s) * grid.lanes * V + tx * V + i] = sums[s][i];
    }
  __syncthreads();
  for (int job = static_cast<int>(threadIdx.x); job < S * grid.lanes * V; job += kSumThreads) {
    float sum = 0;
#pragma unroll
    for (int warp = 0; warp < kSumThreads / 32; ++warp) sum += shared[warp * S * grid.lanes * V + job];
    const int s = job / (grid.lanes * V), at = tile * grid.lanes * V + job - s * grid.lanes * V;
    if (at >= grid.channels) continue;
    if (grid.row_blocks > 1)
      partials[(part * S + s) * grid.channels + at] = sum;
    else if (out.to[s] != nullptr)
      store_sum(of_member(out.to[s], member_stride) + segment * grid.channels + at, sum * factor);
  }
}

// The kernel of the second launch: adds up the partial sums, which are float or double. A block
// computes `columns` channels of one segment. kSumThreads / columns threads divide the partial sums
// of a channel among themselves.
template <typename Partial, typename Out, int kSums>
__global__ void __launch_bounds__(kSumThreads)
    finish_column_sums(const Partial* partials, int parts, int channels, int columns, int tiles,
                       double factor, const SumOutputs<Out, kSums> out, std::ptrdiff_t member_stride) {
  partials = of_member(partials, member_stride);
  __shared__ double shared[kSums][kSumThreads];
  const int x = static_cast<int>(threadIdx.x) % columns, y = static_cast<int>(threadIdx.x) / columns;
  const int slices = kSumThreads / columns;
  const std::int64_t segment = blockIdx.x / tiles;
  const int channel = (static_cast<int>(blockIdx.x) - static_cast<int>(segment) * tiles) * columns + x;
  for (int s = 0; s < kSums; ++s) {
    double sum = 0;
    if (channel < channels)
#pragma unroll 8
      for (int part = y; part < parts; part += slices)
        sum += partials[((segment * parts + part) * kSums + s) * channels + channel];
    shared[s][threadIdx.x] = sum;
  }
  for (int half = slices / 2; half > 0; half /= 2) {
    __syncthreads();
    if (y < half)
      for (int s = 0; s < kSums; ++s)
        shared[s][threadIdx.x] += shared[s][static_cast<int>(threadIdx.x) + half * columns];
  }
  if (y > 0 || channel >= channels) return;
  for (int s = 0; s < kSums; ++s)
    if (out.to[s] != nullptr)
      store_sum(of_member(out.to[s], member_stride) + segment * channels + channel, shared[s][x] * factor);
}

// Launches the second kernel. It adds up the partial sums, [segments, parts, kSums, channels], over
// the parts, and multiplies each total by `factor`.
template <typename Partial, typename Out, int kSums>
void finish_columns(const Partial* partials, std::int64_t segments, int parts, int channels, double factor,
                    const SumOutputs<Out, kSums>& out, Stream stream, MemberLayout members) {
  // Each channel gets a thread per part, but at most 32.
  int columns = kSumThreads;
  while (columns > kSumThreads / 32 && kSumThreads / columns < parts) columns /= 2;
  const int tiles = static_cast<int>(ceil_div(channels, columns));
  launch(finish_column_sums<Partial, Out, kSums>, static_cast<unsigned>(segments * tiles), kSumThreads,
         stream, members, partials, parts, channels, columns, tiles, factor, out);
}

template <typename Source, typename Out>
void sum_columns(const Source& source, const SumGrid& grid, float* partials,
                 const SumOutputs<Out, Source::kSums>& out, Stream stream, MemberLayout members,
                 float factor = 1) {
  launch(column_sums<Source, Out>, grid.blocks(), kSumThreads, stream, members, source, grid, partials, out,
         factor);
  if (grid.row_blocks > 1)
    finish_columns(partials, grid.segments, grid.row_blocks, grid.channels, factor, out, stream, members);
}

}  // namespace convoy::kernels::cuda
