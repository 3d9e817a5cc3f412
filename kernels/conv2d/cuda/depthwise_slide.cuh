// Lets a thread of depthwise_strips.h slide down the image while it computes a strip of output
// columns. Device code.
#pragma once

#include "kernels/conv2d/cuda/depthwise_device.cuh"
#include "kernels/conv2d/cuda/depthwise_strips.h"

namespace convoy::kernels::conv::strips {

// The steps of a strip. A step reads kInputRows input rows and completes kOutputRows output rows.
// The filter touches kLive output rows at a time. Registers hold these rows in kSlots slots. The
// slots are used in rotation, and after kCycle steps the rotation starts again.
template <int filter, int stride, bool transposed, int columns>
struct Slide : DepthwiseAxis<filter, stride, transposed> {
  static constexpr int kColumns = columns;
  static constexpr int kInputRows = !transposed && stride == 2 ? 2 : 1, kOutputRows = transposed ? 2 : 1;
  static constexpr int kLive = !transposed && stride == 2 ? (filter + 1) / 2 : filter;
  static constexpr int kSlots = transposed ? filter + 1 : kLive;
  static constexpr int kCycle = kSlots / kOutputRows;
  // In the first step, the filter also covers this many output rows above the strip. They are not
  // stored.
  static constexpr int kLead = kLive - 1;
  static constexpr int kInputColumns =
      transposed ? columns / 2 + (filter - 1) / 2 : (columns - 1) * stride + filter;
  static_assert(!transposed || (stride == 2 && columns % 2 == 0));

  static __device__ constexpr int slot(int step, int live) { return (kOutputRows * step + live) % kSlots; }
  // Returns the row of the filter through which input row `input` of a step contributes to output
  // row `live` of those that the filter touches. A result outside [0, filter) means that it does
  // not contribute.
  static __device__ constexpr int row_tap(int input, int live) {
    return transposed ? live : stride == 2 ? input + filter - 1 - 2 * live : filter - 1 - live;
  }
};

// Returns a bit mask of `count` columns from `first` on. A bit is 1 if its column is in the image.
__device__ __forceinline__ unsigned columns_inside(int first, int count, int width) {
  unsigned bits = 0;
  for (int j = 0; j < count; ++j) bits |= (unsigned(first + j) < unsigned(width) ? 1u : 0u) << j;
  return bits;
}

// Reads `count` neighbouring pixels. Pixels whose bit in `inside` is 0 become zero.
template <int count, typename T>
__device__ __forceinline__ void load_line(const T* from, int channels, unsigned inside,
                                          StoredPair<T> (&to)[count]) {
#pragma unroll
  for (int j = 0; j < count; ++j) {
    to[j] = {};
    if (inside >> j & 1u) to[j] = load_stored(from + std::int64_t{j} * channels);
  }
}

struct Thread {
  int lane, strip;
  int channel;
  bool active;
};
__device__ __forceinline__ Thread thread_of(const Call& call) {
  const int strip = int(threadIdx.x) / call.lanes, lane = int(threadIdx.x) - strip * call.lanes;
  const int channel = (int(blockIdx.x) % call.slabs * call.lanes + lane) * 2;
  return {lane, strip, channel, channel < call.channels};
}

struct Strip {
  int sample, row, column;
  int rows;
};
template <class S>
__device__ __forceinline__ Strip strip_at(const Call& call, int index) {
  const auto line = call.across(std::uint32_t(index)), sample = call.down(line);
  const int down = int(line - sample * call.down.divisor);
  const int across = index - int(line * call.across.divisor);
  return {int(sample), S::output_origin(down, call.rows, call.padding[0]),
          S::output_origin(across, S::kColumns, call.padding[1]), call.rows};
}

// Adds up `pairs` over the strips of a block. Writes the sums to [count][channels], from `to` on.
template <int count, typename Pair>
__device__ __forceinline__ void store_sums(const Pair (&pairs)[count], Pair* shared, const Call& call,
                                           const Thread& at, decltype(Pair::x)* to) {
  __syncthreads();
#pragma unroll
  for (int i = 0; i < count; ++i) shared[(at.strip * count + i) * call.lanes + at.lane] = pairs[i];
  __syncthreads();
  for (int i = int(threadIdx.x); i < count * call.lanes; i += int(blockDim.x)) {
    Pair sum = shared[i];
    for (int strip = 1; strip < call.strips; ++strip) {
      const Pair other = shared[strip * count * call.lanes + i];
      sum.x += other.x, sum.y += other.y;
    }
    const int which = i / call.lanes, channel = at.channel + 2 * (i - which * call.lanes - at.lane);
    if (channel < call.channels)
      *reinterpret_cast<Pair*>(to + std::int64_t{which} * call.channels + channel) = sum;
  }
}

}  // namespace convoy::kernels::conv::strips
