// Depthwise convolutions in bf16 on Hopper's tensor cores. One tap of the filter multiplies a
// matrix [16 output pixels, 8 channels] of input pixels by a diagonal matrix [8 channels, 8
// channels] of weights. Only an eighth of these products is needed, but tensor cores compute them
// faster than memory delivers pixels, and pixels need not be rearranged. For the gradient of the
// filters, the transposed pixels are multiplied by dy, and the diagonal of the result is the sum.
//
// TMA copies a tile of the input to shared memory while the block computes the tile before it, and
// copies the outputs back.
//
// NaN or infinity times zero is NaN. So a pixel that is not finite may reach the other seven
// channels of its group, in transposed convolutions also a neighbouring column, and in the gradient
// other taps of its channel. CUDA builds only.
#pragma once

#include "kernels/conv2d/cuda/depthwise.h"
#include "kernels/device/cuda_tensor_map.h"
#include "kernels/device/divider.h"

namespace convoy::kernels::conv::diagonal {

// A block computes kSlab channels, which are 64 bytes of a pixel. kGroups warps, with 8 channels
// each, compute the same pixels.
inline constexpr int kThreads = 256, kWarps = kThreads / 32, kSlab = 32, kGroups = kSlab / 8;
// The most bytes of shared memory of a block, so that two blocks fit on a multiprocessor: half of
// its 228 KB, without 1 KB that the system takes and the kernel's own barriers.
inline constexpr int kMostShared = 112 * 1024;

// A patch (DepthwiseTiling) is what the tensor cores compute for one row of their matrices: kRows x
// kColumns output pixels. 16 patches are computed together.
template <int filter, int stride, bool transposed>
struct Form : DepthwiseAxis<filter, stride, transposed> {
  static constexpr int kRows = stride == 2 ? 4 : 7, kColumns = transposed ? 2 : 1;
  // Transposed: the tap through which the first input pixel of a patch contributes to its first
  // output. It is the largest one that is as even or odd as the padding (filter - 1) / 2. Other
  // paddings must be as even or odd (supports()).
  static constexpr int kFirstTap = filter - 1 - (filter - 1) / 2 % 2;
  // The input pixels that a patch needs.
  static constexpr int kInputRows =
      transposed ? (kRows - 1 + kFirstTap) / 2 + 1 : (kRows - 1) * stride + filter;
  static constexpr int kInputColumns = transposed ? (filter + 1) / 2 : filter;
  // The distance from one patch to the next, in rows and columns of the input.
  static constexpr int kRowStep = transposed ? kRows / 2 : kRows * stride;
  static constexpr int kColumnStep = transposed ? 1 : stride;

  // As in DepthwiseAxis, but the first output position is 0 in transposed convolutions, too, since
  // TMA cannot store a box that begins before the tensor.
  static __host__ __device__ constexpr int tap(int input, int output) {
    return transposed ? output + kFirstTap - 2 * input : input - stride * output;
  }
  static __device__ int output_origin(int index, int extent, int) { return index * extent; }
  static __device__ int input_origin(int output, int padding) {
    return transposed ? (output + padding - kFirstTap) / 2 : output * stride - padding;
  }
};

// A box of pixels in shared memory, [rows][images][columns] of kSlab channels, as TMA writes it. In
// an input box, a row has a multiple of eight pixels.
struct Box {
  int rows, columns;
  int pitch, pixels;  // pixels of a row of all images, and of the box

  // The bytes of the pixels, and of the memory that holds the box. The box begins at a multiple of
  // 1,024 bytes, and there is room for another pixel behind it: the gradient's last pair of columns
  // reads one pixel beyond an input box, and lanes without an output pixel write beyond the output
  // box.
  __host__ __device__ int bytes() const { return pixels * kSlab * 2; }
  __host__ __device__ int room() const { return (bytes() + kSlab * 2 + 1023) / 1024 * 1024; }
};

struct Call : DepthwiseCall {
  MemberMap input_map, output_map;  // output_map: of dy in backward_weights
  DepthwiseTiling tiling;
  // The blocks of a cluster compute neighbouring slabs of the same tiles, and wait for each other.
  // So neighbouring channels, which share lines of memory, are read and written at about the same
  // time, even if the tensors are much larger than L2.
  int cluster;
  Box input, output;
  cuda::Divider across;  // divides by tiling.across

  __host__ __device__ bool reads_dy() const { return direction == Direction::backward_weights; }
  // Returns the sets of 16 patches in a row of patches of all images.
  __host__ __device__ int sets() const { return (tiling.across * tiling.images + 15) / 16; }
  // Bytes of one of the two stages into which tiles are loaded in turn. Forward and backward_data
  // have another box for the outputs.
  __host__ __device__ int stage_bytes() const { return input.room() + (reads_dy() ? output.room() : 0); }
  int shared_bytes() const { return 1024 + 2 * stage_bytes() + (reads_dy() ? 0 : output.room()); }
};

// Returns whether these kernels can compute a task that the depthwise engine supports.
bool supports(const Task& task);
// Returns whether clusters make the kernel faster. On an H100 they save a quarter to a third of the
// time where 3x3 filters are applied to tensors that together are several times as large as L2.
// Elsewhere they cost time.
bool prefers_clusters(const Task& task);
// Returns a call with or without clusters. Its cluster is 1 if the slabs cannot be divided.
Call make_call(const Task& task, bool clusters);
// Sets the tensor maps of the operands.
void set_maps(Call& call, const MapMaker& maps);
// Starts the kernel. With `sums`, it also computes batch norm's sums of y.
template <int filter>
void start(const Call& call, bool sums, cudaStream_t stream);

}  // namespace convoy::kernels::conv::diagonal
