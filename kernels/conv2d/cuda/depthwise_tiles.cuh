// Kernels of depthwise convolutions by tiles (depthwise_tiles.h).
#pragma once

#include "kernels/conv2d/cuda/depthwise_device.cuh"
#include "kernels/conv2d/cuda/depthwise_tiles.h"
#include "kernels/gemm/common/pipeline.cuh"

namespace convoy::kernels::conv::tiles {

inline constexpr int kLanes = kChannels / 2;  // threads of a patch; each computes two channels

// Copies a tile's input, whose first pixel is (row, column), to shared memory. The layout there is
// [images][input_rows][input_columns][kChannels]. Pixels outside the image become zero.
template <int bytes, typename T>
__device__ __forceinline__ void stage_lines(const Call& call, int sample, int row, int column, int channel,
                                            T* to) {
  constexpr int kElements = bytes / int(sizeof(T)), kCopies = kChannels / kElements;
  const T* const from = static_cast<const T*>(moved(call, call.operands.input));
  const int warp = int(threadIdx.x) / 32, warps = int(blockDim.x) / 32, lane = int(threadIdx.x) % 32;
  for (int line = warp; line < call.tiling.images * call.input_rows; line += warps) {
    const int image = line / call.input_rows, h = row + line - image * call.input_rows;
    const bool there = unsigned(h) < unsigned(call.input_h) && sample + image < call.samples;
    const T* source = from + input_offset(call, sample + image, h, column) + channel;
    T* const target = to + line * call.input_columns * kChannels;
    for (int i = lane; i < call.input_columns * kCopies; i += 32) {
      const int pixel = i / kCopies, element = i % kCopies * kElements;
      if (channel + element >= call.channels) continue;
      const bool inside = there && unsigned(column + pixel) < unsigned(call.input_w);
      const T* const at = inside ? source + std::int64_t{pixel} * call.channels + element : from;
      gemm::copy_async<bytes>(target + pixel * kChannels + element, at, inside ? bytes : 0);
    }
  }
}
template <typename T>
__device__ __forceinline__ void stage(const Call& call, int sample, int row, int column, int channel, T* to) {
  if (call.copy_bytes == 16)
    stage_lines<16>(call, sample, row, column, channel, to);
  else if (call.copy_bytes == 8)
    stage_lines<8>(call, sample, row, column, channel, to);
  else
    stage_lines<4>(call, sample, row, column, channel, to);
}

struct Thread {
  int lane, x, y, image;
};
__device__ __forceinline__ Thread thread_of(const Call& call) {
  const DepthwiseTiling& tiling = call.tiling;
  const int patch = int(threadIdx.x) / kLanes, row = patch / tiling.across;
  return {int(threadIdx.x) % kLanes, patch - row * tiling.across, row % tiling.down, row / tiling.down};
}

// Adds up `count` pairs of channels over all threads that have the same two channels. The sums are
// then in shared[i * kChannels + channel]. All threads of the block must call this.
template <int count, typename Pair>
__device__ __forceinline__ void sum_pairs(Pair (&pairs)[count], decltype(Pair::x)* shared) {
  const int warp = int(threadIdx.x) / 32, warps = int(blockDim.x) / 32, lane = int(threadIdx.x) % 32;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < count; ++i) {
    pairs[i].x += __shfl_xor_sync(0xffffffffu, pairs[i].x, kLanes);
    pairs[i].y += __shfl_xor_sync(0xffffffffu, pairs[i].y, kLanes);
    if (lane < kLanes)
      *reinterpret_cast<Pair*>(shared + (warp * count + i) * kChannels + 2 * lane) = pairs[i];
  }
  __syncthreads();
  for (int i = int(threadIdx.x); i < count * kChannels; i += int(blockDim.x)) {
    auto sum = shared[i];
    for (int other = 1; other < warps; ++other) sum += shared[other * count * kChannels + i];
    shared[i] = sum;
  }
  __syncthreads();
}

// Writes `count` sums per channel of a block to [count][channels], from `to` on.
template <int count, typename Sum>
__device__ __forceinline__ void store_sums(const Sum* shared, Sum* to, int channel, int channels) {
  for (int i = int(threadIdx.x); i < count * kChannels; i += int(blockDim.x)) {
    const int which = i / kChannels, c = channel + i % kChannels;
    if (c < channels) to[std::int64_t{which} * channels + c] = shared[i];
  }
}

// Computes forward and backward_data of a depthwise convolution.
template <typename T, int K, bool sums>
__global__ void __launch_bounds__(kMostThreads, 2) depthwise_tiles(const __grid_constant__ Call call) {
  extern __shared__ float4 dynamic[];
  using Axis = DepthwiseAxis<K, 1, false>;
  constexpr int kTaps = K * K, kInputRows = kRows - 1 + K, kInputColumns = kColumns - 1 + K;
  const DepthwiseTiling& tiling = call.tiling;
  T* const stages = reinterpret_cast<T*>(dynamic);
  const int stage_elements = int(call.input_elements());
  auto* const filters = reinterpret_cast<float*>(stages + 2 * stage_elements);
  const int slab = int(blockIdx.x) % call.slabs, first = int(blockIdx.x) / call.slabs;
  const int channel = slab * kChannels;
  const Thread at = thread_of(call);
  const auto fetch = [&](int tile, int which) {
    if (tile < tiling.tiles()) {
      const TilePlace place = place_of<Axis, kRows, kColumns>(call, tiling, tile);
      stage(call, place.sample, Axis::input_origin(place.row, call.padding[0]),
            Axis::input_origin(place.column, call.padding[1]), channel, stages + which * stage_elements);
    }
    gemm::copies_commit();
  };
  fetch(first, 0);
  for (int i = int(threadIdx.x); i < kTaps * kChannels; i += int(blockDim.x)) {
    const int c = i / kTaps, tap = i % kTaps;
    const float value = channel + c < call.channels
                            ? cuda::to_float(static_cast<const T*>(moved(
                                  call, call.operands.weights))[std::int64_t{channel + c} * kTaps + tap])
                            : 0.0f;
    filters[(call.flipped ? kTaps - 1 - tap : tap) * kChannels + c] = value;
  }
  __syncthreads();
  const float* const own = filters + 2 * at.lane;
  const int c = channel + 2 * at.lane;
  float2 bias = {0, 0};
  if (call.operands.bias != nullptr && c < call.channels)
    bias = {moved(call, call.operands.bias)[c], moved(call, call.operands.bias)[c + 1]};
  OutputSums<T> total;
  const int valid = sums ? moved(call, call.operands.control)->valid : 0;

  int which = 0;
#pragma unroll 1
  for (int tile = first; tile < tiling.tiles(); tile += call.row_blocks, which ^= 1) {
    fetch(tile + call.row_blocks, which ^ 1);
    gemm::copies_wait<1>();
    __syncthreads();
    const T* const base =
        stages + which * stage_elements +
        ((at.image * call.input_rows + at.y * kRows) * call.input_columns + at.x * kColumns) * kChannels +
        2 * at.lane;
    float2 result[kRows][kColumns];
#pragma unroll
    for (int a = 0; a < kRows; ++a)
#pragma unroll
      for (int b = 0; b < kColumns; ++b) result[a][b] = bias;
#pragma unroll
    for (int i = 0; i < kInputRows; ++i) {
      float2 line[kInputColumns];
#pragma unroll
      for (int j = 0; j < kInputColumns; ++j)
        line[j] = load_pair(base + (i * call.input_columns + j) * kChannels);
#pragma unroll
      for (int a = 0; a < kRows; ++a) {
        const int r = Axis::tap(i, a);
        if (r < 0 || r >= K) continue;
#pragma unroll
        for (int s = 0; s < K; ++s) {
          const float2 weight = load_pair(own + (r * K + s) * kChannels);
#pragma unroll
          for (int b = 0; b < kColumns; ++b)
#pragma unroll
            for (int j = 0; j < kInputColumns; ++j)
              if (Axis::tap(j, b) == s) add_product(result[a][b], line[j], weight);
        }
      }
    }
    __syncthreads();
    const TilePlace place = place_of<Axis, kRows, kColumns>(call, tiling, tile);
    const int sample = place.sample + at.image;
    const int row = place.row + at.y * kRows, column = place.column + at.x * kColumns;
    if (sample >= call.samples || c >= call.channels) continue;
#pragma unroll
    for (int a = 0; a < kRows; ++a) {
      if (unsigned(row + a) >= unsigned(call.output_h)) continue;
      const std::int64_t line = output_offset(call, sample, row + a, column) + c;
#pragma unroll
      for (int b = 0; b < kColumns; ++b) {
        if (unsigned(column + b) >= unsigned(call.output_w)) continue;
        const float2 stored = store_pair<T>(call, result[a][b], line + std::int64_t{b} * call.channels);
        if constexpr (sums) {
          if (sample >= valid) continue;
          total.add(stored, true);
        }
      }
    }
  }
  if constexpr (sums) {
    using Sum = decltype(SumsPair<T>::x);
    SumsPair<T> pairs[2];
    total.get(pairs);
    auto* const shared = reinterpret_cast<Sum*>(dynamic);
    sum_pairs(pairs, shared);
    store_sums<2>(shared, partials_of<Sum>(call) + std::int64_t{first} * 2 * call.channels, channel,
                  call.channels);
  }
}

template <typename T, int filter>
void start_of(const Call& call, bool sums, cudaStream_t stream) {
  const auto kernel = sums ? depthwise_tiles<T, filter, true> : depthwise_tiles<T, filter, false>;
  const auto bytes = int(call.shared_bytes());
  CONVOY_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  kernel<<<call.grid(), call.threads(), std::size_t(bytes), stream>>>(call);
  CONVOY_CUDA(cudaGetLastError());
}

template <int filter>
void start(const Call& call, bool sums, cudaStream_t stream) {
  (call.type == DType::bf16 ? start_of<cuda::bf16, filter> : start_of<float, filter>)(call, sums, stream);
}

}  // namespace convoy::kernels::conv::tiles
