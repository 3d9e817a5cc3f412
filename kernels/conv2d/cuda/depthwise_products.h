// The depthwise engine's way for tensor cores, for bf16: a product of a Toeplitz matrix of a
// filter's row, [near columns, far columns], and near pixels, [patches, near columns], gives the
// far pixels of a channel that the row contributes to. A block copies a tile of the images to
// shared memory, a plane for each of some channels; a warp multiplies the planes of its channels
// and leaves the results in their place. CUDA builds only.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>

#include "kernels/conv2d/engines.h"
#include "kernels/device/divider.h"

namespace convoy::kernels::conv::products {

inline constexpr int kThreads = 256, kWarps = kThreads / 32;
inline constexpr int kPatchRows = 4;  // far rows of a patch

// How near and far pixels of a patch meet. As in DepthwiseCall, near pixels are read and far ones
// are results, or those of dy in backward_weights.
template <int filter, int stride, bool transposed>
struct Form {
  static constexpr int kFilter = filter, kTaps = filter * filter, kStride = stride;
  static constexpr bool kTransposed = transposed;
  // Matrices of 16 near columns and of 8 far columns that a patch has.
  static constexpr int kSteps = stride == 2 && !transposed ? 2 : 1, kParts = transposed ? 2 : 1;
  static constexpr int kFarColumns = 8 * kParts;
  // From one patch to the next.
  static constexpr int kNearRowStep = transposed ? kPatchRows / 2 : kPatchRows * stride;
  static constexpr int kNearColumnStep = transposed ? kFarColumns / 2 : kFarColumns * stride;
  static constexpr int kNearRows =
      transposed ? (kPatchRows + filter) / 2 : (kPatchRows - 1) * stride + filter;
  static constexpr int kNearColumns = 16 * kSteps;

  // The filter's row or column for a near and a far one; outside [0, filter) if there is none.
  static constexpr __host__ __device__ int tap(int near, int far) {
    return transposed ? far + filter - 1 - 2 * near : near - stride * far;
  }
  // The next near column's tap minus this one's. kFirst: the least tap of a pair that has a weight.
  static constexpr int kNextTap = transposed ? -2 : 1, kFirst = transposed ? 0 : -1;
  static constexpr int kPairs = filter + (transposed ? 2 : 1) + 1;  // with a pair of zeros
};

// One launch, and the shape of its blocks.
struct Call {
  Direction direction;
  int filter, stride;
  bool transposed, turned, relu;
  int samples, channels;
  int near_h, near_w, far_h, far_w;
  int padding[2];
  int slab;                   // channels of a block
  int across, down, images;   // patches of a tile
  int near_rows, near_pitch;  // of an image in a plane; a pitch is in elements
  int near_columns;           // that far columns need
  int far_rows, far_pitch;
  int plane_words, far_plane_words;  // far_plane_words: of backward_weights, whose planes lie apart
  cuda::Divider near_pairs, near_lines, far_pairs, far_lines;  // pairs of pixels of a row; rows of an image
  int blocks_across, blocks_down, batches;
  int slabs, row_blocks;  // blocks: for each slab of channels, `row_blocks` that take tiles in turn

  const void *near = nullptr, *weights = nullptr, *mask = nullptr;
  const void* far_in = nullptr;  // backward_weights: dy
  void* far_out = nullptr;
  const float* bias = nullptr;
  const StepControl* control = nullptr;  // for sums
  float* partials = nullptr;             // of sums: [row_blocks][2][C]; of filters: [row_blocks][taps][C]

  Members members = {};

  dim3 grid() const { return dim3(unsigned(slabs * row_blocks), 1, unsigned(members.count)); }
  __host__ __device__ int patches() const { return across * down * images; }
  __host__ __device__ int tiles() const { return blocks_across * blocks_down * batches; }
  __host__ __device__ int taps() const { return filter * filter; }
  // Planes of eight neighbouring channels start apart, so that their writes use other banks.
  __host__ __device__ int skew_words() const { return 256 / slab; }
  __host__ __device__ int planes_words(int plane) const { return slab * plane + slab / 8 * skew_words(); }
  __host__ __device__ int table_words() const {
    return direction == Direction::backward_weights ? 0 : slab * filter * (filter + 3);
  }
  // The sums of backward_weights take the place of the planes at the end, and those of batch norm.
  std::size_t shared_bytes() const {
    const int planes = planes_words(plane_words) + (far_plane_words > 0 ? planes_words(far_plane_words) : 0);
    const int sums = direction == Direction::backward_weights ? kWarps * filter * stride * 128 : kWarps * 64;
    return std::size_t(std::max(planes + table_words(), sums)) * 4;
  }
};

// Tells whether the way suits the task. The engine must support it.
bool suit(const Task& task);
Call call_of(const Task& task);
// Launches a call with sums or without. One source file for each filter.
template <int filter>
void start(const Call& call, bool sums, cudaStream_t stream);

}  // namespace convoy::kernels::conv::products
