// Batch normalisation on the device: how a [rows, channels] matrix is cut into blocks, the sums of its columns,
// and the constants of a channel. rows = N * H * W of channels_last images, or N.
#pragma once

#include "kernels/batch_norm/batch_norm.h"
#include "kernels/device/cuda_elements.cuh"
#include "kernels/device/cuda_reduce.cuh"

namespace convoy::kernels::cuda {

// A block is `tile` packs wide and `height` rows high; grid.x covers the columns and grid.y strides over the
// rows. A thread keeps its columns, hence its channels' constants, for the whole launch.
struct ColumnGrid {
  int channels, packs;    // of a row
  int tile, height;       // of a block; tile * height <= its threads
  int tiles, row_blocks;  // grid.x, grid.y
  std::int64_t rows, pixels;
};

// most_tile: packs that a block is wide at most. Never more than `blocks` blocks, so that they run in one wave.
inline ColumnGrid column_grid(std::int64_t rows, std::int64_t pixels, std::int64_t channels, int width,
                              int threads, int blocks, int rows_a_thread, int most_tile) {
  ColumnGrid grid{};
  grid.channels = static_cast<int>(channels);
  grid.packs = grid.channels / width;
  grid.tiles = (grid.packs + most_tile - 1) / most_tile;
  grid.tile = (grid.packs + grid.tiles - 1) / grid.tiles;
  grid.height = threads / grid.tile;
  grid.rows = rows;
  grid.pixels = pixels;
  const std::int64_t useful = (rows + grid.height * rows_a_thread - 1) / (grid.height * rows_a_thread);
  const std::int64_t wanted = blocks / grid.tiles;
  grid.row_blocks = static_cast<int>(useful < wanted ? useful : wanted);
  if (grid.row_blocks < 1) grid.row_blocks = 1;
  return grid;
}

// Where a thread of a ColumnGrid stands.
struct Place {
  int tx, ty, pack, channel;  // channel: the first of the thread's
  bool active;
};

template <int V>
__device__ __forceinline__ Place place_in(const ColumnGrid& grid) {
  Place place;
  place.tx = static_cast<int>(threadIdx.x) % grid.tile;
  place.ty = static_cast<int>(threadIdx.x) / grid.tile;
  place.pack = static_cast<int>(blockIdx.x) * grid.tile + place.tx;
  place.channel = place.pack * V;
  place.active = place.ty < grid.height && place.pack < grid.packs;
  return place;
}

// Rows of samples that are valid.
__device__ __forceinline__ std::int64_t valid_rows(const StepControl* control, const ColumnGrid& grid) {
  const std::int64_t rows = control->valid * grid.pixels;
  return rows < grid.rows ? rows : grid.rows;
}

// Adds v of the block's rows, column by column, into the threads with ty == 0. `shared` holds N * threads / 2
// floats; every thread of the block calls.
template <int N>
__device__ __forceinline__ void add_rows(float (&v)[N], const ColumnGrid& grid, const Place& place,
                                         float* shared) {
  const int slots = blockDim.x / 2;
  for (int n = grid.height; n > 1;) {
    const int half = (n + 1) / 2;
    if (place.ty >= half && place.ty < n)
#pragma unroll
      for (int i = 0; i < N; ++i) shared[i * slots + (place.ty - half) * grid.tile + place.tx] = v[i];
    __syncthreads();
    if (place.ty + half < n)
#pragma unroll
      for (int i = 0; i < N; ++i) v[i] += shared[i * slots + place.ty * grid.tile + place.tx];
    __syncthreads();
    n = half;
  }
}

// Two sums a column over all row blocks, from partials [row_blocks][2][channels]. The result for sum k of channel c
// lies in shared[k * width + (c - first)], width = tile * V and first = the tile's first channel.
template <int V, int threads>
__device__ __forceinline__ void add_partials(const float* partials, const ColumnGrid& grid, double* shared) {
  constexpr int kWide = V % 4 == 0 ? 4 : 1;
  const int first = blockIdx.x * grid.tile * V;
  const int width = min(grid.tile * V, grid.channels - first);
  const int quads = width / kWide, both = 2 * quads;
  const int lanes = both < threads ? threads / both : 1;  // threads that share a column's row blocks
  for (int job = threadIdx.x; job < both * lanes; job += threads) {
    const int lane = job / both, which = job % both / quads, quad = job % quads;
    const float* from = partials + which * std::int64_t{grid.channels} + first + quad * kWide;
    double sum[kWide] = {};
#pragma unroll 8
    for (int block = lane; block < grid.row_blocks; block += lanes) {
      float value[kWide];
      unpack(load_pack<kWide>(from + 2 * std::int64_t{grid.channels} * block), value);
      for (int i = 0; i < kWide; ++i) sum[i] += value[i];
    }
    for (int i = 0; i < kWide; ++i) shared[(lane * 2 + which) * width + quad * kWide + i] = sum[i];
  }
  __syncthreads();
  for (int column = threadIdx.x; column < 2 * width; column += threads) {
    double sum = shared[column];
    for (int lane = 1; lane < lanes; ++lane) sum += shared[lane * 2 * width + column];
    shared[column] = sum;
  }
  __syncthreads();
}

// What a channel is normalised with.
struct Moments {
  double mean, invstd, variance;
};

__device__ __forceinline__ Moments moments_of(const double* sums, int channels, int channel, double count,
                                              double epsilon) {
  if (count == 0) return {0.0, rsqrt(1.0 + epsilon), 1.0};
  const double mean = sums[channel] / count;
  const double variance = fmax(sums[channels + channel] / count - mean * mean, 0.0);
  return {mean, rsqrt(variance + epsilon), variance};
}

// The values that a channel's sums run over.
__device__ __forceinline__ double count_of(const StepControl* control, bool synchronised,
                                           std::int64_t pixels) {
  return static_cast<double>(synchronised ? control->global_valid : control->valid) *
         static_cast<double>(pixels);
}

// A channel's map before the ReLU. Forward and backward evaluate the same expression, so that they cut the same
// elements. In f32 the mean is taken off first, which keeps the bits of a channel whose mean is large; bf16
// has not got them, and gets along with two constants a channel.
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
