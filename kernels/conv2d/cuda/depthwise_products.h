// Depthwise convolutions in bf16 on tensor cores. A row of the filter, as a Toeplitz matrix [input
// columns, output columns], is multiplied by the pixels under it, [patches, input columns]. A patch
// is a rectangle of output pixels. The sum of the products over the filter's rows is the output of
// one channel. A block copies a tile of the input to shared memory, as one plane per channel. A
// warp multiplies the planes of its channels and overwrites them with outputs. CUDA builds only.
#pragma once

#include "kernels/conv2d/cuda/depthwise.h"
#include "kernels/device/divider.h"

namespace convoy::kernels::conv::products {

inline constexpr int kThreads = 256, kWarps = kThreads / 32;
inline constexpr int kPatchRows = 4;  // output rows of a patch

// The extents of a patch and of the matrices that give its outputs.
template <int filter, int stride, bool transposed>
struct Form : DepthwiseAxis<filter, stride, transposed> {
  // The input columns of a patch are kInputMatrices matrices of 16, its output columns
  // kOutputMatrices matrices of 8.
  static constexpr int kInputMatrices = stride == 2 && !transposed ? 2 : 1,
                       kOutputMatrices = transposed ? 2 : 1;
  static constexpr int kInputColumns = 16 * kInputMatrices, kOutputColumns = 8 * kOutputMatrices;
  static constexpr int kInputRows =
      transposed ? (kPatchRows + filter) / 2 : (kPatchRows - 1) * stride + filter;
  // The distance from one patch to the next, in rows and columns of the input.
  static constexpr int kRowStep = transposed ? kPatchRows / 2 : kPatchRows * stride;
  static constexpr int kColumnStep = transposed ? kOutputColumns / 2 : kOutputColumns * stride;

  // The Toeplitz matrix is stored as words of two weights: one tap, from kFirst on, and the tap of
  // the next input column, which is the tap kNextTap further. A row of the filter has kPairs
  // different words, of which one is zero.
  static constexpr int kNextTap = transposed ? -2 : 1, kFirst = transposed ? 0 : -1;
  static constexpr int kPairs = filter + (transposed ? 2 : 1) + 1;
};

// The layout of a tile's pixels in shared memory. A plane has one channel of all images of the
// tile.
struct Plane {
  int rows, pitch;             // rows: of one image; pitch: elements from one row to the next
  int words;                   // 4-byte words of a plane
  cuda::Divider pairs, lines;  // divide by the pairs of pixels in a row, and by `rows`
};

struct Call : DepthwiseCall {
  DepthwiseTiling tiling;
  int slab;             // the channels of a slab
  Plane input, output;  // in forward and backward_data, outputs overwrite the input planes
  int input_columns;    // input columns that a tile needs

  __host__ __device__ bool has_output_planes() const { return direction == Direction::backward_weights; }
  // After every eight planes there is a gap of this many words. It avoids bank conflicts when a
  // thread writes channels 0, 8, 16 and so on of a pixel.
  __host__ __device__ int skew_words() const { return 256 / slab; }
  __host__ __device__ int words_of(const Plane& plane) const {
    return slab * plane.words + slab / 8 * skew_words();
  }
  // Shared memory holds the planes and, but for backward_weights, the table of weight pairs. At the
  // end, the block's sums overwrite them.
  std::size_t shared_bytes() const {
    const int planes = words_of(input) + (has_output_planes() ? words_of(output) : 0);
    const int table = has_output_planes() ? 0 : slab * filter * (filter + 3);
    const int sums = has_output_planes() ? kWarps * filter * stride * 128 : kWarps * 64;
    return std::size_t(std::max(planes + table, sums)) * 4;
  }
};

// Returns whether this family can compute a task that the depthwise engine supports.
bool supports(const Task& task);
Call make_call(const Task& task);
// Starts the kernel. With `sums`, it also computes batch norm's sums of y.
template <int filter>
void start(const Call& call, bool sums, cudaStream_t stream);

}  // namespace convoy::kernels::conv::products
