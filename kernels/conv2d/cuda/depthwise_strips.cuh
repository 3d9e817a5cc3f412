// Code that the depthwise kernels share: how a strip slides, loads of pairs of channels,
// and sums over a block. Device code.
#pragma once

#include "kernels/conv2d/cuda/depthwise.h"
#include "kernels/device/cuda_launch.cuh"

namespace convoy::kernels::conv {

// A strip in steps. Each step reads kNear near rows, after which kDone far rows are complete; kLive
// far rows are under the filter meanwhile. Their sums are in kSlots slots, used in turn; the slots
// are the same again after kCycle steps.
template <int filter, int stride, bool transposed, int columns>
struct Slide {
  static constexpr int kFilter = filter, kTaps = filter * filter, kStride = stride, kColumns = columns;
  static constexpr bool kTransposed = transposed;
  static constexpr int kNear = !transposed && stride == 2 ? 2 : 1, kDone = transposed ? 2 : 1;
  static constexpr int kLive = !transposed && stride == 2 ? (filter + 1) / 2 : filter;
  static constexpr int kSlots = transposed ? filter + 1 : kLive;
  static constexpr int kCycle = kSlots / kDone;
  static constexpr int kLag = kLive - 1;  // far rows of the first step that are before the strip
  static constexpr int kNearColumns =
      transposed ? columns / 2 + (filter - 1) / 2 : (columns - 1) * stride + filter;
  static_assert(!transposed || (stride == 2 && columns % 2 == 0));

  static __device__ constexpr int slot(int step, int live) { return (kDone * step + live) % kSlots; }
  // The filter's row for the near row `near` of a step and live far row `live`, and the filter's
  // column for a near and a far column; outside [0, filter) if there is none.
  static __device__ constexpr int row_tap(int near, int live) {
    return transposed ? live : stride == 2 ? near + filter - 1 - 2 * live : filter - 1 - live;
  }
  static __device__ constexpr int column_tap(int near, int far) {
    return transposed ? far + filter - 1 - 2 * near : near - stride * far;
  }
  // First far position of a strip, and the near position at which its sums begin.
  static __device__ int far_origin(int index, int extent, int padding) {
    return index * extent - (transposed ? padding & 1 : 0);
  }
  static __device__ int near_origin(int far, int padding) {
    return transposed ? (far + padding) / 2 - (filter - 1) / 2 : far * stride - padding;
  }
};

// Two neighbouring channels as they are stored, and as floats.
template <typename T>
using StoredPair = std::conditional_t<sizeof(T) == 2, std::uint32_t, float2>;
__device__ __forceinline__ float2 floats_of(float2 pair) { return pair; }
__device__ __forceinline__ float2 floats_of(std::uint32_t pair) {
  return {__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u)};
}
template <typename T>
__device__ __forceinline__ StoredPair<T> load_stored(const T* from) {
  return *reinterpret_cast<const StoredPair<T>*>(from);
}
__device__ __forceinline__ void add_product(float2& sum, float2 a, float2 b) {
  sum.x = fmaf(a.x, b.x, sum.x);
  sum.y = fmaf(a.y, b.y, sum.y);
}

// The bits of the columns that an image of `width` has, of `count` from `first` on.
__device__ __forceinline__ unsigned columns_inside(int first, int count, int width) {
  unsigned bits = 0;
  for (int j = 0; j < count; ++j) bits |= (unsigned(first + j) < unsigned(width) ? 1u : 0u) << j;
  return bits;
}

// Reads a line of pixels, with zeros outside the image.
template <int count, typename T>
__device__ __forceinline__ void load_line(const T* from, int channels, unsigned inside,
                                          StoredPair<T> (&to)[count]) {
#pragma unroll
  for (int j = 0; j < count; ++j) {
    to[j] = {};
    if (inside >> j & 1u) to[j] = load_stored(from + std::int64_t{j} * channels);
  }
}

// The place of a thread, and of a strip.
struct DepthwiseThread {
  int lane, strip;
  int channel;
  bool active;
};
__device__ __forceinline__ DepthwiseThread thread_of(const DepthwiseCall& call) {
  const int strip = int(threadIdx.x) / call.lanes, lane = int(threadIdx.x) - strip * call.lanes;
  const int channel = (int(blockIdx.x) % call.slabs * call.lanes + lane) * 2;
  return {lane, strip, channel, channel < call.channels};
}
struct Strip {
  int sample, row, column;  // its first far pixel
  int rows;
};
template <class S>
__device__ __forceinline__ Strip strip_at(const DepthwiseCall& call, int index) {
  const auto line = call.across(std::uint32_t(index)), sample = call.down(line);
  const int down = int(line - sample * call.down.divisor);
  const int across = index - int(line * call.across.divisor);
  return {int(sample), S::far_origin(down, call.rows, call.padding[0]),
          S::far_origin(across, S::kColumns, call.padding[1]), call.rows};
}

// Sums pairs over the strips of a block and writes them to [count][channels] from `to` on.
template <int count>
__device__ __forceinline__ void store_sums(const float2 (&pairs)[count], float2* shared,
                                           const DepthwiseCall& call, const DepthwiseThread& at, float* to) {
  __syncthreads();
#pragma unroll
  for (int i = 0; i < count; ++i) shared[(at.strip * count + i) * call.lanes + at.lane] = pairs[i];
  __syncthreads();
  for (int i = int(threadIdx.x); i < count * call.lanes; i += int(blockDim.x)) {
    float2 sum = shared[i];
    for (int strip = 1; strip < call.strips; ++strip) {
      const float2 other = shared[strip * count * call.lanes + i];
      sum.x += other.x, sum.y += other.y;
    }
    const int which = i / call.lanes, channel = at.channel + 2 * (i - which * call.lanes - at.lane);
    if (channel < call.channels)
      *reinterpret_cast<float2*>(to + std::int64_t{which} * call.channels + channel) = sum;
  }
}

}  // namespace convoy::kernels::conv
