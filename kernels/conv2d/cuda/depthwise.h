// The depthwise engine: convolutions with as many groups as channels. Memory bandwidth limits them.
// The engine has three families of kernels: strips (forward and both gradients), tiles (5x5 and 7x7
// with stride 1, not the gradient of filters) and diagonal products (bf16 on Hopper's tensor
// cores). This header has the fields of a launch that all families need. CUDA builds only.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "kernels/conv2d/engines.h"

namespace convoy::kernels::conv {

// A convolution from input pixels to output pixels, both NHWC:
//   forward           from x to y
//   backward_data     from dy to dx
//   backward_weights  from x to dy: reads both, and adds up their products for each tap
// Filters are [channels][filter][filter].
struct DepthwiseShape {
  Direction direction;
  DType type;
  int filter, stride;  // filter: the height and width of the filters
  // With stride 1, backward_data convolves dy with filters turned by 180 degrees (`flipped`). With
  // stride 2, it is a transposed convolution (`transposed`): through tap r, output o reads input (o
  // + padding - r) / 2, if this quotient is an integer.
  bool flipped, transposed;
  int samples, channels;
  int input_h, input_w, output_h, output_w;
  int padding[2];  // in height and width; if flipped, filter - 1 - the padding of the layer

  __host__ __device__ int taps() const { return filter * filter; }
  // Returns by how many positions the first strip begins before the first output, along
  // axis 0 (height) or 1 (width). Transposed kernels compute outputs in pairs, so they may have to
  // begin one position earlier.
  int lead(int axis) const { return transposed ? padding[axis] & 1 : 0; }
};
DepthwiseShape depthwise_shape(const Task& task);

// The operands of a launch, and the work on each output element before it is stored. Addresses are
// those of member 0 (MemberLayout, kernels/device/kernel.h).
struct DepthwiseOperands {
  const void *input = nullptr, *weights = nullptr;
  // The second input of backward_weights, which reads `input` (x) and dy and writes only
  // `partials`.
  const void* dy = nullptr;
  void* output = nullptr;                // y in forward, dx in backward_data; else null
  const float* bias = nullptr;           // null if there is none
  bool relu = false;                     // applies after the bias is added
  const void* mask = nullptr;            // if not null, the output is 0 wherever the mask is not above 0
  const StepControl* control = nullptr;  // batch norm's sums run over its `valid` samples
  // The partial sums of each block: batch norm's sums of y and of y squared, [row_blocks][2]
  // [channels] of cuda::MomentSum, or the gradient of the filters, [row_blocks][taps][channels] of
  // float.
  void* partials = nullptr;
  MemberLayout members = {};
};

// The fields of a launch that all families have. A slab is a range of channels. Each slab has
// row_blocks blocks, to which its strips or tiles are dealt out in turn.
struct DepthwiseCall : DepthwiseShape {
  DepthwiseOperands operands;
  int slabs, row_blocks;

  dim3 grid() const { return dim3(unsigned(slabs * row_blocks), 1, unsigned(operands.members.count)); }
};
// Returns the number of blocks, at most `most`, that should compute `items` strips or tiles. With
// this number, all blocks get nearly equally many.
inline int even_blocks(std::int64_t items, std::int64_t most) {
  const std::int64_t turns = (items + std::max<std::int64_t>(most, 1) - 1) / std::max<std::int64_t>(most, 1);
  return int((items + turns - 1) / turns);
}

// Divides the output into tiles. A tile has across x down patches, which are small rectangles of
// output pixels, in each of `images` images. `images` is above 1 only if a tile covers whole
// images.
struct DepthwiseTiling {
  int across, down, images;
  int tiles_across, tiles_down, batches;  // tiles of an image, and groups of `images` images

  __host__ __device__ int patches() const { return across * down * images; }
  __host__ __device__ int tiles() const { return tiles_across * tiles_down * batches; }
  // Sets how many tiles there are. A patch has `rows` x `columns` pixels.
  void divide(const DepthwiseShape& shape, int rows, int columns) {
    const auto parts = [](int extent, int size) { return (extent + size - 1) / size; };
    tiles_across = parts(shape.output_w, across * columns);
    tiles_down = parts(shape.output_h, down * rows);
    batches = parts(shape.samples, images);
  }
};

// Chooses the cheapest tiling with at most `most` patches of `rows` x `columns` pixels in a tile.
// complete(call) fills in the rest of the call and returns its cost, or nothing if a block would
// need too much shared memory.
template <typename Call, typename Complete>
void choose_tiling(Call& call, int most, int rows, int columns, const Complete& complete) {
  Call best{};
  double least = 0;
  DepthwiseTiling& tiling = call.tiling;
  for (tiling.across = 1; tiling.across <= most; ++tiling.across)
    for (tiling.down = 1; tiling.across * tiling.down <= most; ++tiling.down)
      for (tiling.images = 1; tiling.patches() <= most; ++tiling.images) {
        const bool whole = tiling.across * columns >= call.output_w && tiling.down * rows >= call.output_h;
        if (tiling.images > 1 && !whole) break;
        tiling.divide(call, rows, columns);
        const std::optional<double> cost = complete(call);
        if (!cost) break;
        if (least == 0 || *cost < least) least = *cost, best = call;
      }
  call = best;
}

// Maps output positions to input positions along one axis. Filter and stride are known at compile
// time.
template <int filter, int stride, bool transposed>
struct DepthwiseAxis {
  static constexpr int kFilter = filter, kTaps = filter * filter, kStride = stride;
  static constexpr bool kTransposed = transposed;

  // Returns the tap through which input position `input` contributes to output position `output`.
  // The result is outside [0, filter) if it does not contribute. Positions count from
  // output_origin() and input_origin().
  static __host__ __device__ constexpr int tap(int input, int output) {
    return transposed ? output + filter - 1 - 2 * input : input - stride * output;
  }
  // Returns the first output position of strip or tile number `index`. Each has `extent` positions.
  static __device__ int output_origin(int index, int extent, int padding) {
    return index * extent - (transposed ? padding & 1 : 0);
  }
  // Returns the first input position that outputs from position `output` on need.
  static __device__ int input_origin(int output, int padding) {
    return transposed ? (output + padding) / 2 - (filter - 1) / 2 : output * stride - padding;
  }
};

}  // namespace convoy::kernels::conv
