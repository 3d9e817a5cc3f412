// The depthwise engine: convolutions with as many groups as channels, which are limited by memory.
// A thread has two channels of a strip of neighbouring results. It slides down the images: each
// pixel that it reads is used at once for all results under the filter, whose sums stay in
// registers. Neighbouring strips share pixels through the L1 cache. Sums are fp32 in a fixed order.
// CUDA builds only.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/conv2d/engines.h"
#include "kernels/device/divider.h"

namespace convoy::kernels::conv {

inline constexpr int kDepthwiseThreads = 128;  // of a block, at most
inline constexpr int kDepthwiseLanes = 32;     // pairs of channels of a block, at most

// One launch. The pixels that are read ("near") are those of x, or of dy in backward_data. Results
// ("far") are y of forward, dx of backward_data, and dy, which is also read, of backward_weights.
// With stride 1 backward_data is a forward convolution of dy with turned filters; with stride 2 it
// is transposed: far position f takes near positions (f + padding - r) / 2.
struct DepthwiseCall {
  Direction direction;
  DType type;
  int filter, stride;
  bool transposed, turned, relu;
  int samples, channels;
  int near_h, near_w, far_h, far_w;
  int padding[2];
  int lanes, strips;           // of a block: threads side by side, and strips
  int rows;                    // far rows of a strip
  cuda::Divider across, down;  // strips of a row and of a column of an image
  int slabs, row_blocks;       // blocks: for each slab of channels, `row_blocks` that take strips in turn

  const void *near = nullptr, *weights = nullptr, *mask = nullptr;
  const void* far_in = nullptr;  // backward_weights: dy
  void* far_out = nullptr;
  const float* bias = nullptr;
  const StepControl* control = nullptr;  // for sums
  float* partials = nullptr;             // of sums: [row_blocks][2][C]; of filters: [row_blocks][taps][C]

  Members members = {};

  dim3 grid() const { return dim3(unsigned(slabs * row_blocks), 1, unsigned(members.count)); }
  __host__ __device__ int threads() const { return lanes * strips; }
  __host__ __device__ int all_strips() const { return samples * int(down.divisor) * int(across.divisor); }
  __host__ __device__ int taps() const { return filter * filter; }
};

// Returns the far columns of a strip. More of them need fewer loads per result, but more registers.
constexpr int depthwise_columns(Direction direction, int filter, int stride) {
  if (direction == Direction::backward_data && stride == 2) return 8;
  if (stride == 2) return 4;
  return direction == Direction::backward_weights && filter == 7 ? 4 : 7;
}

// Returns how many blocks a multiprocessor shall hold, which limits the registers of a thread.
constexpr int depthwise_blocks(Direction direction, int filter) {
  if (direction == Direction::backward_weights) return filter == 3 ? 3 : 2;
  return filter == 3 ? 4 : filter == 5 ? 3 : 2;
}

// Launches a call with sums (forward) or without. One source file for each filter.
template <int filter>
void start_depthwise(const DepthwiseCall& call, bool sums, cudaStream_t stream);

}  // namespace convoy::kernels::conv
