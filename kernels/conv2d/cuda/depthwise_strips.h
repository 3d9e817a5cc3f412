// The strip kernels of the depthwise engine support all filters and strides of the engine, for
// forward and both gradients. A thread computes two channels of a strip of neighbouring output
// columns and slides down the image. It reads each input pixel once and adds it to all outputs
// under the filter. The sums of these outputs stay in registers, in fp32, and are added in a fixed
// order. CUDA builds only.
#pragma once

#include "kernels/conv2d/cuda/depthwise.h"
#include "kernels/device/divider.h"

namespace convoy::kernels::conv::strips {

inline constexpr int kMostThreads = 128;  // the most threads of a block
inline constexpr int kMostLanes = 32;     // the most pairs of channels of a block

struct Call : DepthwiseCall {
  int lanes, strips;           // how many pairs of channels, and how many strips, a block has
  int rows;                    // output rows of a strip
  cuda::Divider across, down;  // divide by the number of strips across an image, and down an image

  int threads() const { return lanes * strips; }
  __host__ __device__ int all_strips() const { return samples * int(down.divisor) * int(across.divisor); }
};

// Returns how many output columns a strip has. With more columns there are fewer loads per output,
// but a thread needs more registers.
constexpr int columns_of(Direction direction, int filter, int stride) {
  if (direction == Direction::backward_data && stride == 2) return 8;
  if (stride == 2) return 4;
  return direction == Direction::backward_weights && filter == 7 ? 4 : 7;
}

// Returns how many blocks a multiprocessor should hold at the same time. More blocks leave fewer
// registers for a thread.
constexpr int resident_blocks(Direction direction, int filter) {
  if (direction == Direction::backward_weights) return filter == 3 ? 3 : 2;
  return filter == 3 ? 4 : filter == 5 ? 3 : 2;
}

Call make_call(const Task& task);
// Starts the kernel. With `sums`, it also computes batch norm's sums of y.
template <int filter>
void start(const Call& call, bool sums, cudaStream_t stream);

}  // namespace convoy::kernels::conv::strips
