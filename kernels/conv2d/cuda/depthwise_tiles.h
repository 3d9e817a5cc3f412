// Another way of the depthwise engine, for large filters with stride 1, forward and backward_data:
// a block stages a tile of the images in shared memory by cp.async while it works on the tile
// before it, for 32 channels; a thread has two channels of 4 x 7 results in registers. CUDA builds
// only.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>

#include "kernels/conv2d/engines.h"

namespace convoy::kernels::conv::tiles {

inline constexpr int kChannels = 32;           // of a block
inline constexpr int kMostThreads = 256;       // 16 for each tile of a thread
inline constexpr int kRows = 4, kColumns = 7;  // results of a thread

// One launch, and the shape of its blocks. "Near" pixels are read, "far" ones are results, as in
// DepthwiseCall.
struct Call {
  DType type;
  int filter;
  int samples, channels;
  int near_h, near_w, far_h, far_w;
  int padding[2];
  bool turned, relu;
  int copy_bytes;               // of one cp.async: 16, 8 or 4
  int across, down, images;     // tiles of threads of a block
  int tile_rows, tile_columns;  // staged near pixels of an image
  int blocks_across, blocks_down, batches;
  int slabs, row_blocks;  // blocks: for each slab of channels, `row_blocks` that take tiles in turn

  const void *near = nullptr, *weights = nullptr, *mask = nullptr;
  void* far_out = nullptr;
  const float* bias = nullptr;
  const StepControl* control = nullptr;  // for sums
  float* partials = nullptr;             // of sums: [row_blocks][2][C]

  Members members = {};

  dim3 grid() const { return dim3(unsigned(slabs * row_blocks), 1, unsigned(members.count)); }
  __host__ __device__ int threads() const { return across * down * images * (kChannels / 2); }
  __host__ __device__ int tiles() const { return blocks_across * blocks_down * batches; }
  __host__ __device__ int taps() const { return filter * filter; }
  __host__ __device__ std::size_t near_elements() const {
    return std::size_t(images) * tile_rows * tile_columns * kChannels;
  }
  // Two stages and the filters, whose place the sums of warps take at the end.
  std::size_t shared_bytes() const {
    return 2 * near_elements() * bytes_of(type) + std::size_t(taps()) * kChannels * sizeof(float);
  }
};

// Tells whether there are tiles for the task. The engine must support it.
bool suit(const Task& task);
Call call_of(const Task& task);
// Launches a call with sums or without. One source file for each filter.
template <int filter>
void start(const Call& call, bool sums, cudaStream_t stream);

}  // namespace convoy::kernels::conv::tiles
