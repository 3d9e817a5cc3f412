// The depthwise engine: convolutions with as many groups as channels, which are limited by memory.
// A block stages a tile of the images in shared memory by cp.async while it works on the tile
// before it, for 32 channels; a thread has two channels of a small tile of results in registers.
// Sums are fp32 in a fixed order. CUDA builds only.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>

#include "kernels/conv2d/engines.h"

namespace convoy::kernels::conv {

inline constexpr int kDepthwiseChannels = 32;  // of a block
// Threads of a block, 16 for each tile; fewer where a thread has the gradient of a large filter in
// its registers.
constexpr int depthwise_threads(Direction direction, int filter) {
  return direction == Direction::backward_weights && filter > 3 ? 128 : 256;
}

// How results relate to the images that are read ("near"): results ("far") are y of forward, dx of
// backward_data, and dy, which is also read, of backward_weights. With stride 1 backward_data is a
// forward convolution of dy with turned filters; with stride 2 it is transposed: far position f
// takes near positions (f + padding - r) / 2.
struct DepthwiseFrame {
  int filter, stride;
  bool transposed;
  int rows, columns;  // far pixels of a thread

  // Near pixels that t tiles of threads read along an axis with `pixels` far pixels each.
  int near(int t, int pixels) const {
    return transposed ? t * pixels / 2 + (filter - 1) / 2 : (t * pixels - 1) * stride + filter;
  }
};

// One launch, and the shape of its blocks.
struct DepthwiseCall {
  DepthwiseFrame frame;
  Direction direction;
  DType type;
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
  const void* far_in = nullptr;  // backward_weights: dy
  void* far_out = nullptr;
  const float* bias = nullptr;
  const StepControl* control = nullptr;  // for sums
  float* partials = nullptr;             // of sums: [row_blocks][2][C]; of filters: [row_blocks][taps][C]

  __host__ __device__ int threads() const { return across * down * images * (kDepthwiseChannels / 2); }
  __host__ __device__ int tiles() const { return blocks_across * blocks_down * batches; }
  __host__ __device__ int taps() const { return frame.filter * frame.filter; }
  __host__ __device__ std::size_t near_elements() const {
    return std::size_t(images) * tile_rows * tile_columns * kDepthwiseChannels;
  }
  __host__ __device__ std::size_t far_elements() const {
    return std::size_t(images) * down * frame.rows * across * frame.columns * kDepthwiseChannels;
  }
  std::size_t stage_bytes() const {
    return (near_elements() + (direction == Direction::backward_weights ? far_elements() : 0)) *
           bytes_of(type);
  }
  // Two stages, and the filters or the sums of warps.
  std::size_t shared_bytes() const {
    const int floats = std::max(taps(), frame.filter * threads() / 32) * kDepthwiseChannels;
    return 2 * stage_bytes() + std::size_t(floats) * sizeof(float);
  }
};

// Launches a call with sums (forward) or without. One source file for each filter.
template <int filter>
void start_depthwise(const DepthwiseCall& call, bool sums, cudaStream_t stream);

}  // namespace convoy::kernels::conv
