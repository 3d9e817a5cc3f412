// What the kernels of the depthwise engine share: the map between near and far pixels, tiles in
// shared memory, and sums over a block. Device code.
#pragma once

#include "kernels/conv2d/cuda/depthwise.h"
#include "kernels/device/cuda_launch.cuh"
#include "kernels/gemm/pipeline.cuh"

namespace convoy::kernels::conv {

inline constexpr int kLanes = kDepthwiseChannels / 2;  // threads side by side, of two channels each

// DepthwiseFrame at compile time.
template <int filter, int stride, bool transposed, int rows, int columns>
struct Frame {
  static constexpr int kFilter = filter, kTaps = filter * filter, kRows = rows, kColumns = columns;
  static constexpr int kStepRows = transposed ? rows / 2 : rows * stride;
  static constexpr int kStepColumns = transposed ? columns / 2 : columns * stride;
  static constexpr int kNearRows = transposed ? rows / 2 + (filter - 1) / 2 : (rows - 1) * stride + filter;
  static constexpr int kNearColumns =
      transposed ? columns / 2 + (filter - 1) / 2 : (columns - 1) * stride + filter;
  static_assert(!transposed || (rows % 2 == 0 && columns % 2 == 0 && stride == 2));

  // The filter's row (column) that multiplies a near row for a far row; outside [0, filter) if
  // none.
  static __device__ constexpr int tap(int near, int far) {
    return transposed ? far - 2 * (near - (filter - 1) / 2) : near - stride * far;
  }
  // First far and near position of a block's tile.
  static __device__ int far_origin(int tile, int extent, int padding) {
    return tile * extent - (transposed ? padding & 1 : 0);
  }
  static __device__ int near_origin(int far, int padding) {
    return transposed ? (far + padding) / 2 - (filter - 1) / 2 : far * stride - padding;
  }
};

__device__ __forceinline__ float2 load_pair(const float* from) {
  return *reinterpret_cast<const float2*>(from);
}
__device__ __forceinline__ float2 load_pair(const cuda::bf16* from) {
  const auto word = *reinterpret_cast<const std::uint32_t*>(from);
  return {__uint_as_float(word << 16), __uint_as_float(word & 0xffff0000u)};
}

// A tile of the problem: its first sample and far pixel.
struct DepthwisePlace {
  int sample, row, column;
};
template <class F>
__device__ __forceinline__ DepthwisePlace place_of(const DepthwiseCall& call, int tile) {
  const int rest = tile / call.blocks_across, batch = rest / call.blocks_down;
  return {batch * call.images,
          F::far_origin(rest - batch * call.blocks_down, call.down * F::kRows, call.padding[0]),
          F::far_origin(tile - rest * call.blocks_across, call.across * F::kColumns, call.padding[1])};
}

// Copies pixels [row, row + rows) x [column, column + columns) of samples to shared memory, zeros
// for those outside. A warp has a line at a time.
template <int bytes, typename T>
__device__ __forceinline__ void stage_lines(const DepthwiseCall& call, const T* from, int height, int width,
                                            int sample, int row, int column, int rows, int columns,
                                            int channel, T* to) {
  constexpr int kElements = bytes / int(sizeof(T)), kCopies = kDepthwiseChannels / kElements;
  const int warp = int(threadIdx.x) / 32, warps = int(blockDim.x) / 32, lane = int(threadIdx.x) % 32;
  for (int line = warp; line < call.images * rows; line += warps) {
    const int image = line / rows, h = row + line - image * rows;
    const bool there = unsigned(h) < unsigned(height) && sample + image < call.samples;
    const T* source =
        from + ((std::int64_t{sample + image} * height + h) * width + column) * call.channels + channel;
    T* const target = to + line * columns * kDepthwiseChannels;
    for (int i = lane; i < columns * kCopies; i += 32) {
      const int pixel = i / kCopies, element = i % kCopies * kElements;
      if (channel + element >= call.channels) continue;
      const bool inside = there && unsigned(column + pixel) < unsigned(width);
      const T* const at = inside ? source + std::int64_t{pixel} * call.channels + element : from;
      gemm::copy_async<bytes>(target + pixel * kDepthwiseChannels + element, at, inside ? bytes : 0);
    }
  }
}
template <typename T>
__device__ __forceinline__ void stage(const DepthwiseCall& call, const T* from, int height, int width,
                                      int sample, int row, int column, int rows, int columns, int channel,
                                      T* to) {
  if (call.copy_bytes == 16)
    stage_lines<16>(call, from, height, width, sample, row, column, rows, columns, channel, to);
  else if (call.copy_bytes == 8)
    stage_lines<8>(call, from, height, width, sample, row, column, rows, columns, channel, to);
  else
    stage_lines<4>(call, from, height, width, sample, row, column, rows, columns, channel, to);
}

// The position of a thread in its block.
struct DepthwiseThread {
  int lane, x, y, image;
};
__device__ __forceinline__ DepthwiseThread thread_of(const DepthwiseCall& call) {
  const int tile = int(threadIdx.x) / kLanes, row = tile / call.across;
  return {int(threadIdx.x) % kLanes, tile - row * call.across, row % call.down, row / call.down};
}

// Sums over the threads of a block that have the same channels. The sum of warps is then in
// shared[which * 32 + channel] for counts of pairs. All threads call it.
template <int count>
__device__ __forceinline__ void sum_pairs(float2 (&pairs)[count], float* shared) {
  const int warp = int(threadIdx.x) / 32, warps = int(blockDim.x) / 32, lane = int(threadIdx.x) % 32;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < count; ++i) {
    pairs[i].x += __shfl_xor_sync(0xffffffffu, pairs[i].x, kLanes);
    pairs[i].y += __shfl_xor_sync(0xffffffffu, pairs[i].y, kLanes);
    if (lane < kLanes)
      *reinterpret_cast<float2*>(shared + (warp * count + i) * kDepthwiseChannels + 2 * lane) = pairs[i];
  }
  __syncthreads();
  for (int i = int(threadIdx.x); i < count * kDepthwiseChannels; i += int(blockDim.x)) {
    float sum = shared[i];
    for (int other = 1; other < warps; ++other) sum += shared[other * count * kDepthwiseChannels + i];
    shared[i] = sum;
  }
  __syncthreads();
}

// Writes sums of a block to [part][count][channels].
template <int count>
__device__ __forceinline__ void store_sums(const float* shared, float* to, int channel, int channels) {
  for (int i = int(threadIdx.x); i < count * kDepthwiseChannels; i += int(blockDim.x)) {
    const int which = i / kDepthwiseChannels, c = channel + i % kDepthwiseChannels;
    if (c < channels) to[std::int64_t{which} * channels + c] = shared[i];
  }
}

}  // namespace convoy::kernels::conv
