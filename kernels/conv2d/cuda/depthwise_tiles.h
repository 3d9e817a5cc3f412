// The tile kernels of the depthwise engine, for filters of 5x5 and 7x7 with stride 1, in forward
// and backward_data. A block computes 32 channels. While it computes a tile, it copies the input of
// its next tile to shared memory by cp.async. A thread computes two channels of a patch of 4 x 7
// output pixels in registers. CUDA builds only.
#pragma once

#include "kernels/conv2d/cuda/depthwise.h"

namespace convoy::kernels::conv::tiles {

inline constexpr int kChannels = 32;           // the channels of a block
inline constexpr int kMostThreads = 256;       // the most threads of a block, 16 per patch
inline constexpr int kRows = 4, kColumns = 7;  // the output pixels of a patch

struct Call : DepthwiseCall {
  DepthwiseTiling tiling;
  int input_rows, input_columns;  // input pixels that a tile reads from one image
  int copy_bytes;                 // bytes of one cp.async: 16, 8 or 4

  int threads() const { return tiling.patches() * (kChannels / 2); }
  __host__ __device__ std::size_t input_elements() const {
    return std::size_t(tiling.images) * input_rows * input_columns * kChannels;
  }
  // Shared memory holds the inputs of two tiles and the filters. At the end, the sums of the warps
  // overwrite the inputs.
  std::size_t shared_bytes() const {
    return 2 * input_elements() * bytes_of(type) + std::size_t(taps()) * kChannels * sizeof(float);
  }
};

// Returns whether these kernels can compute a task that the depthwise engine supports.
bool supports(const Task& task);
Call make_call(const Task& task);
// Starts the kernel. With `sums`, it also computes batch norm's sums of y.
template <int filter>
void start(const Call& call, bool sums, cudaStream_t stream);

}  // namespace convoy::kernels::conv::tiles
