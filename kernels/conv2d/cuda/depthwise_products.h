// The products of the depthwise engine, for bf16 on tensor cores. For each channel, each row of the
// filter adds a product to the outputs: input pixels, [patches, input columns], times a Toeplitz
// matrix of the row, [input columns, output columns]. A block copies a tile of the input to shared
// memory, as one plane per channel. A warp multiplies the planes of its channels, and leaves the
// outputs in their place. CUDA builds only.
#pragma once

#include "kernels/conv2d/cuda/depthwise.h"
#include "kernels/device/divider.h"

namespace convoy::kernels::conv::products {

inline constexpr int kThreads = 256, kWarps = kThreads / 32;
inline constexpr int kPatchRows = 4;  // output rows of a patch

// The extents of a patch and of the matrices that give its outputs.
template <int filter, int stride, bool transposed>
struct Form : DepthwiseAxis<filter, stride, transposed> {
  // A patch has kInputMatrices matrices of 16 input columns and kOutputMatrices of 8 output
  // columns.
  static constexpr int kInputMatrices = stride == 2 && !transposed ? 2 : 1,
                       kOutputMatrices = transposed ? 2 : 1;
  static constexpr int kInputColumns = 16 * kInputMatrices, kOutputColumns = 8 * kOutputMatrices;
  static constexpr int kInputRows =
      transposed ? (kPatchRows + filter) / 2 : (kPatchRows - 1) * stride + filter;
  // Input rows and columns from one patch to the next.
  static constexpr int kRowStep = transposed ? kPatchRows / 2 : kPatchRows * stride;
  static constexpr int kColumnStep = transposed ? kOutputColumns / 2 : kOutputColumns * stride;

  // A word of the Toeplitz matrix is a pair of weights: that of a tap, which is at least kFirst,
  // and that of the next input column, whose tap is kNextTap further. kPairs is the number of
  // different pairs of a row of the filter, including a pair of zeros.
  static constexpr int kNextTap = transposed ? -2 : 1, kFirst = transposed ? 0 : -1;
  static constexpr int kPairs = filter + (transposed ? 2 : 1) + 1;
};

// How the pixels of a tile lie in the planes of shared memory. A plane has one channel of all
// images of the tile, one image after the other.
struct Plane {
  int rows, pitch;             // rows: of one image; pitch: elements from one row to the next
  int words;                   // 4-byte words from one plane to the next
  cuda::Divider pairs, lines;  // divide by the pairs of pixels in a row, and by `rows`
};

struct Call : DepthwiseCall {
  DepthwiseTiling tiling;
  int slab;             // the channels of a slab
  Plane input, output;  // both have memory in backward_weights only; else outputs overwrite inputs
  int input_columns;    // the columns of a tile's input that outputs need

  __host__ __device__ bool has_output_planes() const { return direction == Direction::backward_weights; }
  // A gap of this many words follows every eight planes. Without it, writes of a pixel's channels
  // 0, 8, 16 and so on would meet in one bank.
  __host__ __device__ int skew_words() const { return 256 / slab; }
  __host__ __device__ int words_of(const Plane& plane) const {
    return slab * plane.words + slab / 8 * skew_words();
  }
  // Shared memory holds the planes and, but for backward_weights, the pairs of weights. In the end,
  // the block's sums (of the filters' gradient, or of batch norm) overwrite them.
  std::size_t shared_bytes() const {
    const int planes = words_of(input) + (has_output_planes() ? words_of(output) : 0);
    const int table = has_output_planes() ? 0 : slab * filter * (filter + 3);
    const int sums = has_output_planes() ? kWarps * filter * stride * 128 : kWarps * 64;
    return std::size_t(std::max(planes + table, sums)) * 4;
  }
};

// Returns whether products can compute the task. The depthwise engine must support it.
bool supports(const Task& task);
Call make_call(const Task& task);
// Starts the kernel. If `sums` is set, it also computes batch norm's sums of y. Each filter size is
// instantiated in a source file of its own.
template <int filter>
void start(const Call& call, bool sums, cudaStream_t stream);

}  // namespace convoy::kernels::conv::products
