// Depthwise convolutions in bf16 on tensor cores. A patch is a rectangle of output pixels. The
// pixels under one row of the filter form a matrix [patches, input columns]. It is multiplied by a
// Toeplitz matrix [input columns, output columns] of that row's weights. The sum of these products
// over the rows of the filter is the output of one channel. A block copies a tile of the input to
// shared memory, as one plane per channel. A warp multiplies the planes of its channels and
// overwrites them with outputs. CUDA builds only.
#pragma once

#include "kernels/conv2d/cuda/depthwise.h"
#include "kernels/device/divider.h"

namespace convoy::kernels::conv::products {

inline constexpr int kThreads = 256, kWarps = kThreads / 32;
inline constexpr int kPatchRows = 4;  // output rows of a patch

// The extents of a patch (a rectangle of output pixels) and of the matrices that are multiplied for
// it.
template <int filter, int stride, bool transposed>
struct Form : DepthwiseAxis<filter, stride, transposed> {
  // A patch's input columns are divided into kInputMatrices matrices of 16, and its output columns
  // into kOutputMatrices matrices of 8.
  static constexpr int kInputMatrices = stride == 2 && !transposed ? 2 : 1,
                       kOutputMatrices = transposed ? 2 : 1;
  static constexpr int kInputColumns = 16 * kInputMatrices, kOutputColumns = 8 * kOutputMatrices;
  static constexpr int kInputRows =
      transposed ? (kPatchRows + filter) / 2 : (kPatchRows - 1) * stride + filter;
  // The distance from one patch to the next, in rows and columns of the input.
  static constexpr int kRowStep = transposed ? kPatchRows / 2 : kPatchRows * stride;
  static constexpr int kColumnStep = transposed ? kOutputColumns / 2 : kOutputColumns * stride;

  // The Toeplitz matrix is stored as 32-bit words of two weights. The second weight belongs to the
  // next input column, and its tap is the first weight's tap plus kNextTap. The first weights run
  // from tap kFirst on. A row of the filter has kPairs different words, of which one is zero.
  static constexpr int kNextTap = transposed ? -2 : 1, kFirst = transposed ? 0 : -1;
  static constexpr int kPairs = filter + (transposed ? 2 : 1) + 1;
};

// The layout of a tile in shared memory. A plane has one channel of all images of the tile.
struct Plane {
  int rows, pitch;             // rows: of one image; pitch: elements from one row to the next
  int words;                   // 4-byte words of a plane
  cuda::Divider pairs, lines;  // divide by the number of pixel pairs in a row, and by `rows`
};

struct Call : DepthwiseCall {
  DepthwiseTiling tiling;
  int slab;             // how many channels a slab (range of channels) has
  Plane input, output;  // in forward and backward_data, outputs overwrite the input planes
  int input_columns;    // the input columns that a tile needs

  __host__ __device__ bool has_output_planes() const { return direction == Direction::backward_weights; }
  // After every eight planes there is a gap of this many words. The gap avoids bank conflicts when
  // a thread writes channels 0, 8, 16 and so on of a pixel.
  __host__ __device__ int skew_words() const { return 256 / slab; }
  __host__ __device__ int words_of(const Plane& plane) const {
    return slab * plane.words + slab / 8 * skew_words();
  }
  // Shared memory holds the planes and, except in backward_weights, the table of weight pairs. At
  // the end, the block's sums overwrite both.
  std::size_t shared_bytes() const {
    const int planes = words_of(input) + (has_output_planes() ? words_of(output) : 0);
    const int table = has_output_planes() ? 0 : slab * filter * (filter + 3);
    const int sums = has_output_planes() ? kWarps * filter * stride * 128 : kWarps * 64;
    return std::size_t(std::max(planes + table, sums)) * 4;
  }
};

// Returns whether these kernels can compute a task that the depthwise engine supports.
bool supports(const Task& task);
Call make_call(const Task& task);
// Starts the kernel. With `sums`, it also computes batch norm's sums of y.
template <int filter>
void start(const Call& call, bool sums, cudaStream_t stream);

}  // namespace convoy::kernels::conv::products
