// Code that the CUDA kernels of batch normalisation share. They treat an activation as a matrix,
// with pixels as rows and channels as columns. If the channels of a pixel do not fill whole packs
// of 16 bytes, several pixels are joined to one row. For example, if rows are four pixels of 58
// channels, column i of 232 belongs to channel i % 58.
#pragma once

#include <algorithm>

#include "kernels/activation/formulas.h"
#include "kernels/batch_norm/batch_norm.h"
#include "kernels/device/cuda_elements.cuh"
#include "kernels/device/cuda_kernel.h"
#include "kernels/device/cuda_reduce.cuh"

namespace convoy::kernels::cuda {

// The greatest width of a thread block, in packs. Eight packs of 16 bytes are one cache line.
inline constexpr int kMostTile = 8;

struct ColumnGrid {
  int columns, packs;    // elements in a row, and packs in a row
  int channels;          // elements of a pixel; fewer than `columns` if pixels are joined
  int tile, tile_shift;  // width of a block in packs, which is a power of two, and its logarithm
  int tiles, height;     // tiles: blocks across a row; height: rows that a block reads at a time
  int row_blocks;        // how many thread blocks divide the rows among themselves
  std::int64_t rows, sample_rows, pixels;  // sample_rows, pixels: the rows and pixels of one sample

  unsigned blocks() const { return static_cast<unsigned>(tiles) * static_cast<unsigned>(row_blocks); }
  __host__ __device__ bool joins_pixels() const { return columns != channels; }
  // Returns the number of partial sums: two per row block and column.
  __host__ __device__ std::int64_t partials() const { return 2 * std::int64_t{columns} * row_blocks; }
  // Returns how many tickets (counters, cuda_resident.h) finish_sums() needs for one member.
  __host__ __device__ int tickets() const { return tiles + (joins_pixels() ? 1 : 0); }
  __device__ int channel_of(int column) const {
    while (column >= channels) column -= channels;
    return column;
  }
};

// Returns how many pixels are joined to one row of the matrix.
inline int joined_pixels(const ImageExtents& e, DType type) { return joined_pixels(type, e.pixels(), {e.c}); }

// Divides the rows among blocks of `threads` threads, so that a thread has at most `rows_a_thread`
// rows. `most_blocks`, unless it is 0, limits the number of blocks; threads may then have more
// rows.
inline ColumnGrid column_grid(const ImageExtents& e, DType type, int threads, int rows_a_thread,
                              int most_blocks = 0) {
  const int joined = joined_pixels(e, type),
            wide = type == DType::bf16 ? kPackWidth<bf16> : kPackWidth<float>;
  ColumnGrid grid{};
  grid.channels = static_cast<int>(e.c);
  grid.columns = grid.channels * joined;
  grid.packs = grid.columns % wide == 0 ? grid.columns / wide : grid.columns;
  grid.tile_shift = grid.packs % 8 == 0 || grid.packs % 4 != 0 ? 3 : 2;
  if (grid.packs < 5) grid.tile_shift = grid.packs > 2 ? 2 : grid.packs - 1;
  grid.tile = 1 << grid.tile_shift;
  grid.tiles = (grid.packs + grid.tile - 1) / grid.tile;
  grid.height = threads / grid.tile;
  grid.pixels = e.pixels();
  grid.sample_rows = grid.pixels / joined;
  grid.rows = e.n * grid.sample_rows;
  const std::int64_t turn = std::int64_t{grid.height} * rows_a_thread;
  std::int64_t row_blocks = (grid.rows + turn - 1) / turn;
  if (most_blocks > 0) row_blocks = std::min<std::int64_t>(row_blocks, most_blocks / grid.tiles);
  grid.row_blocks = static_cast<int>(std::max<std::int64_t>(row_blocks, 1));
  return grid;
}

// Describes the mask of a ReLU, which has one byte per pack of the activation and one bit per
// element.
inline TensorDesc relu_mask_of(const TensorDesc& y) {
  TensorDesc mask{DType::u8, y.shape, y.layout, nullptr};
  const int width = y.dtype == DType::bf16 ? kPackWidth<bf16> : kPackWidth<float>;
  const ImageExtents e = image_extents(y.shape);
  const int joined = joined_pixels(e, y.dtype);
  if (joined > 1) mask.shape = {e.n, e.c, 1, e.pixels() / joined};
  // A pack has `width` elements if whole packs fill a row of the matrix, else one element. The
  // kernels divide rows into packs by the same rule.
  if (e.c * joined % width == 0) mask.shape[1] = e.c * joined / width;
  return mask;
}
template <typename T, int V>
__device__ __forceinline__ std::uint8_t positive_bits(const Pack<T, V>& pack) {
  float value[V];
  unpack(pack, value);
  unsigned bits = 0;
#pragma unroll
  for (int i = 0; i < V; ++i) bits |= (value[i] > 0 ? 1u : 0u) << i;
  return static_cast<std::uint8_t>(bits);
}

// The part of the matrix that the calling thread computes. tx and ty say where the thread is in its
// block, which is `tile` threads wide.
struct Place {
  int tx, ty;
  int row_block, first;  // first: the first column of the block
  int column;            // the first column of the thread
  int columns;           // how many columns the block has
  bool active;
};

// Returns which part of the matrix the calling thread computes. With `from_end`, the blocks that
// start first compute the last rows, which the previous pass has left in the L2 cache.
template <int V, bool from_end = false>
__device__ __forceinline__ Place place_in(const ColumnGrid& grid) {
  const auto block = static_cast<int>(from_end ? gridDim.x - 1 - blockIdx.x : blockIdx.x);
  Place place;
  place.tx = static_cast<int>(threadIdx.x) & (grid.tile - 1);
  place.ty = static_cast<int>(threadIdx.x) >> grid.tile_shift;
  place.row_block = block / grid.tiles;
  place.first = (block - place.row_block * grid.tiles) * grid.tile * V;
  place.column = place.first + place.tx * V;
  place.columns = min(grid.tile * V, grid.columns - place.first);
  place.active = place.column < grid.columns;
  return place;
}

// Returns the number of rows that belong to valid samples.
__device__ __forceinline__ std::int64_t valid_rows(const StepControl* control, const ColumnGrid& grid) {
  const std::int64_t rows = control->valid * grid.sample_rows;
  return rows < grid.rows ? rows : grid.rows;
}

// Adds up two kinds of values per column over the block's threads, in Sum (float or double). `v`
// has this thread's V values of the first kind and then its V values of the second kind. Writes the
// sums to `partials`, [row_blocks, 2, columns].
template <int V, int threads, typename Sum>
__device__ __forceinline__ void store_partials(Sum (&v)[2 * V], const ColumnGrid& grid, const Place& place,
                                               Sum* shared, Sum* partials) {
  constexpr int N = 2 * V;
  for (int lane = 16; lane >= grid.tile; lane /= 2)
#pragma unroll
    for (int i = 0; i < N; ++i) v[i] += __shfl_xor_sync(0xffffffffu, v[i], lane);
  if (static_cast<int>(threadIdx.x) % 32 < grid.tile)
#pragma unroll
    for (int i = 0; i < N; ++i)
      shared[(static_cast<int>(threadIdx.x) / 32 * grid.tile + place.tx) * N + i] = v[i];
  __syncthreads();
  for (int job = threadIdx.x; job < grid.tile * N; job += threads) {
    Sum sum = 0;
#pragma unroll
    for (int warp = 0; warp < threads / 32; ++warp) sum += shared[warp * grid.tile * N + job];
    const int column = place.first + job / N * V + job % V, which = job % N / V;
    if (column < grid.columns)
      partials[(2 * std::int64_t{place.row_block} + which) * grid.columns + column] = sum;
  }
}

// Adds up what store_partials() has written, over all row blocks. Writes the sums to `shared`, [2,
// columns of the block].
template <int V, int threads, typename Sum>
__device__ __forceinline__ void add_partials(const Sum* partials, const ColumnGrid& grid, const Place& place,
                                             double* shared) {
  constexpr int kWide = V % 4 == 0 ? 16 / static_cast<int>(sizeof(Sum)) : 1;
  const int packs = place.columns / kWide, both = 2 * packs;
  // A job is kWide neighbouring columns of one kind of values. `lanes` threads divide the row
  // blocks of a job among themselves.
  const int lanes = threads / both;
  const int lane = static_cast<int>(threadIdx.x) / both, job = static_cast<int>(threadIdx.x) % both;
  if (lane < lanes) {
    const int which = job / packs, pack = job % packs;
    const Sum* from = partials + which * std::int64_t{grid.columns} + place.first + pack * kWide;
    double sum[kWide] = {};
#pragma unroll 16
    for (int block = lane; block < grid.row_blocks; block += lanes) {
      const Pack<Sum, kWide> values = load_pack<kWide>(from + 2 * std::int64_t{grid.columns} * block);
      for (int i = 0; i < kWide; ++i) sum[i] += values.value[i];
    }
    for (int i = 0; i < kWide; ++i) shared[(lane * 2 + which) * place.columns + pack * kWide + i] = sum[i];
  }
  __syncthreads();
  for (int column = threadIdx.x; column < 2 * place.columns; column += threads) {
    double sum = shared[column];
#pragma unroll 8
    for (int other = 1; other < lanes; ++other) sum += shared[other * 2 * place.columns + column];
    shared[column] = sum;
  }
  __syncthreads();
}

// The statistics that normalise a channel. invstd is 1 / sqrt(variance + epsilon).
struct Moments {
  double mean, invstd, variance;
};

// Returns 1 / sqrt(value) in double, by one step of Newton's method from the float result. This
// costs much less than the library's function.
__device__ __forceinline__ double inverse_root(double value) {
  const double root = rsqrtf(static_cast<float>(value));
  return root * (1.5 - 0.5 * value * root * root);
}

// Returns the statistics of a channel. `inverse_count` is 1 / the number of values. If there are no
// values, it is 0, and the result has mean 0 and variance 1.
__device__ __forceinline__ Moments moments_of(const double* sums, int channels, int channel,
                                              double inverse_count, double epsilon) {
  if (inverse_count == 0) return {0.0, inverse_root(1.0 + epsilon), 1.0};
  const double mean = sums[channel] * inverse_count;
  const double variance = fmax(sums[channels + channel] * inverse_count - mean * mean, 0.0);
  return {mean, inverse_root(variance + epsilon), variance};
}

__device__ __forceinline__ double inverse_of(double count) { return count > 0 ? 1 / count : 0; }

// Returns the number of values in each channel's sums.
__device__ __forceinline__ double count_of(const StepControl* control, bool synchronised,
                                           std::int64_t pixels) {
  return static_cast<double>(synchronised ? control->global_valid : control->valid) *
         static_cast<double>(pixels);
}

// The kernels have a template argument kActivation. It is an ActivationKind, or this number if the
// batch norm has no activation. (A ReLU is a flag of its own.)
inline constexpr int kNoActivation = -1;

// Calls visit() with the template argument kActivation for this problem, as an integral_constant.
template <typename Visit>
void with_activation(const BatchNormProblem& problem, Visit visit) {
  if (!problem.activation) return visit(std::integral_constant<int, kNoActivation>{});
  activation::with_kind(problem.activation->kind,
                        [&](auto kind) { visit(std::integral_constant<int, static_cast<int>(kind())>{}); });
}
inline ActivationProblem activation_of(const BatchNormProblem& problem) {
  return problem.activation.value_or(ActivationProblem{});
}

// Computes (x - mean) scale + shift for one channel. Forward and backward use the same expression,
// so that both find the same zeros of the ReLU. For f32 the mean is subtracted first, which is
// precise even if the mean is large. For bf16 `shift` includes the mean, which saves a register.
template <typename T>
struct Affine {
  static constexpr bool kCentred = sizeof(T) == 4;
  float mean, scale, shift;

  __device__ __forceinline__ static Affine of(const Moments& moments, float gamma, float beta) {
    const float scale = static_cast<float>(moments.invstd) * gamma;
    const double shift = kCentred ? beta : beta - moments.mean * scale;
    return {static_cast<float>(moments.mean), scale, static_cast<float>(shift)};
  }
  __device__ __forceinline__ float operator()(float x) const {
    return fmaf(kCentred ? x - mean : x, scale, shift);
  }
};

}  // namespace convoy::kernels::cuda
