// Device code of depthwise_tiles.h.
#pragma once

#include "kernels/conv2d/cuda/depthwise_tiles.h"
#include "kernels/device/cuda_launch.cuh"
#include "kernels/gemm/pipeline.cuh"

namespace convoy::kernels::conv::tiles {

inline constexpr int kLanes = kChannels / 2;  // threads side by side, of two channels each

__device__ __forceinline__ float2 load_pair(const float* from) {
  return *reinterpret_cast<const float2*>(from);
}
__device__ __forceinline__ float2 load_pair(const cuda::bf16* from) {
  const auto word = *reinterpret_cast<const std::uint32_t*>(from);
  return {__uint_as_float(word << 16), __uint_as_float(word & 0xffff0000u)};
}

// A tile of the problem: its first sample and far pixel.
struct Place {
  int sample, row, column;
};
__device__ __forceinline__ Place place_of(const Call& call, int tile) {
  const int rest = tile / call.blocks_across, batch = rest / call.blocks_down;
  return {batch * call.images, (rest - batch * call.blocks_down) * call.down * kRows,
          (tile - rest * call.blocks_across) * call.across * kColumns};
}

// Copies pixels [row, row + rows) x [column, column + columns) of samples to shared memory, zeros
// for those outside. A warp has a line at a time.
template <int bytes, typename T>
__device__ __forceinline__ void stage_lines(const Call& call, const T* from, int height, int width,
                                            int sample, int row, int column, int rows, int columns,
                                            int channel, T* to) {
  constexpr int kElements = bytes / int(sizeof(T)), kCopies = kChannels / kElements;
  const int warp = int(threadIdx.x) / 32, warps = int(blockDim.x) / 32, lane = int(threadIdx.x) % 32;
  for (int line = warp; line < call.images * rows; line += warps) {
    const int image = line / rows, h = row + line - image * rows;
    const bool there = unsigned(h) < unsigned(height) && sample + image < call.samples;
    const T* source =
        from + ((std::int64_t{sample + image} * height + h) * width + column) * call.channels + channel;
    T* const target = to + line * columns * kChannels;
    for (int i = lane; i < columns * kCopies; i += 32) {
      const int pixel = i / kCopies, element = i % kCopies * kElements;
      if (channel + element >= call.channels) continue;
      const bool inside = there && unsigned(column + pixel) < unsigned(width);
      const T* const at = inside ? source + std::int64_t{pixel} * call.channels + element : from;
      gemm::copy_async<bytes>(target + pixel * kChannels + element, at, inside ? bytes : 0);
    }
  }
}
template <typename T>
__device__ __forceinline__ void stage(const Call& call, const T* from, int height, int width, int sample,
                                      int row, int column, int rows, int columns, int channel, T* to) {
  if (call.copy_bytes == 16)
    stage_lines<16>(call, from, height, width, sample, row, column, rows, columns, channel, to);
  else if (call.copy_bytes == 8)
    stage_lines<8>(call, from, height, width, sample, row, column, rows, columns, channel, to);
  else
    stage_lines<4>(call, from, height, width, sample, row, column, rows, columns, channel, to);
}

// The position of a thread in its block.
struct Thread {
  int lane, x, y, image;
};
__device__ __forceinline__ Thread thread_of(const Call& call) {
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
      *reinterpret_cast<float2*>(shared + (warp * count + i) * kChannels + 2 * lane) = pairs[i];
  }
  __syncthreads();
  for (int i = int(threadIdx.x); i < count * kChannels; i += int(blockDim.x)) {
    float sum = shared[i];
    for (int other = 1; other < warps; ++other) sum += shared[other * count * kChannels + i];
    shared[i] = sum;
  }
  __syncthreads();
}

// Writes sums of a block to [part][count][channels].
template <int count>
__device__ __forceinline__ void store_sums(const float* shared, float* to, int channel, int channels) {
  for (int i = int(threadIdx.x); i < count * kChannels; i += int(blockDim.x)) {
    const int which = i / kChannels, c = channel + i % kChannels;
    if (c < channels) to[std::int64_t{which} * channels + c] = shared[i];
  }
}

// forward and backward_data.
template <typename T, int K, bool sums>
__global__ void __launch_bounds__(kMostThreads, 2) depthwise_window(const __grid_constant__ Call call) {
  extern __shared__ float4 dynamic[];
  constexpr int kTaps = K * K, kNearRows = kRows - 1 + K, kNearColumns = kColumns - 1 + K;
  const auto* const near = static_cast<const T*>(cuda::of_member(call.near, call.members.stride));
  T* const stages = reinterpret_cast<T*>(dynamic);
  const int stage_elements = int(call.near_elements());
  auto* const filters = reinterpret_cast<float*>(stages + 2 * stage_elements);
  const int slab = int(blockIdx.x) % call.slabs, first = int(blockIdx.x) / call.slabs;
  const int channel = slab * kChannels;
  const Thread at = thread_of(call);
  const auto fetch = [&](int tile, int which) {
    if (tile < call.tiles()) {
      const Place place = place_of(call, tile);
      stage(call, near, call.near_h, call.near_w, place.sample, place.row - call.padding[0],
            place.column - call.padding[1], call.tile_rows, call.tile_columns, channel,
            stages + which * stage_elements);
    }
    gemm::copies_commit();
  };
  fetch(first, 0);
  for (int i = int(threadIdx.x); i < kTaps * kChannels; i += int(blockDim.x)) {
    const int c = i / kTaps, tap = i % kTaps;
    const float value =
        channel + c < call.channels
            ? cuda::to_float(static_cast<const T*>(cuda::of_member(
                  call.weights, call.members.stride))[std::int64_t{channel + c} * kTaps + tap])
            : 0.0f;
    filters[(call.turned ? kTaps - 1 - tap : tap) * kChannels + c] = value;
  }
  __syncthreads();
  const float* const own = filters + 2 * at.lane;
  const int c = channel + 2 * at.lane;
  float2 bias = {0, 0};
  if (call.bias != nullptr && c < call.channels)
    bias = {cuda::of_member(call.bias, call.members.stride)[c],
            cuda::of_member(call.bias, call.members.stride)[c + 1]};
  float2 total[2] = {};
  const int valid = sums ? cuda::of_member(call.control, call.members.stride)->valid : 0;

  int which = 0;
#pragma unroll 1
  for (int tile = first; tile < call.tiles(); tile += call.row_blocks, which ^= 1) {
    fetch(tile + call.row_blocks, which ^ 1);
    gemm::copies_wait<1>();
    __syncthreads();
    const T* const base =
        stages + which * stage_elements +
        ((at.image * call.tile_rows + at.y * kRows) * call.tile_columns + at.x * kColumns) * kChannels +
        2 * at.lane;
    float2 result[kRows][kColumns];
#pragma unroll
    for (int a = 0; a < kRows; ++a)
#pragma unroll
      for (int b = 0; b < kColumns; ++b) result[a][b] = bias;
#pragma unroll
    for (int i = 0; i < kNearRows; ++i) {
      float2 line[kNearColumns];
#pragma unroll
      for (int j = 0; j < kNearColumns; ++j)
        line[j] = load_pair(base + (i * call.tile_columns + j) * kChannels);
#pragma unroll
      for (int a = 0; a < kRows; ++a) {
        const int r = i - a;
        if (r < 0 || r >= K) continue;
#pragma unroll
        for (int s = 0; s < K; ++s) {
          const float2 weight = load_pair(own + (r * K + s) * kChannels);
#pragma unroll
          for (int b = 0; b < kColumns; ++b)
#pragma unroll
            for (int j = 0; j < kNearColumns; ++j)
              if (j - b == s) {
                result[a][b].x = fmaf(line[j].x, weight.x, result[a][b].x);
                result[a][b].y = fmaf(line[j].y, weight.y, result[a][b].y);
              }
        }
      }
    }
    __syncthreads();  // the stage may be overwritten
    const Place place = place_of(call, tile);
    const int sample = place.sample + at.image;
    const int row = place.row + at.y * kRows, column = place.column + at.x * kColumns;
    if (sample >= call.samples || c >= call.channels) continue;
#pragma unroll
    for (int a = 0; a < kRows; ++a) {
      if (unsigned(row + a) >= unsigned(call.far_h)) continue;
      const std::int64_t line =
          ((std::int64_t{sample} * call.far_h + row + a) * call.far_w + column) * call.channels + c;
#pragma unroll
      for (int b = 0; b < kColumns; ++b) {
        if (unsigned(column + b) >= unsigned(call.far_w)) continue;
        const std::int64_t offset = line + std::int64_t{b} * call.channels;
        float value[2] = {result[a][b].x, result[a][b].y};
        if (call.relu) value[0] = cuda::rectified(value[0]), value[1] = cuda::rectified(value[1]);
        if (call.mask != nullptr) {
          const float2 mask =
              load_pair(static_cast<const T*>(cuda::of_member(call.mask, call.members.stride)) + offset);
          value[0] = mask.x > 0 ? value[0] : 0.0f;
          value[1] = mask.y > 0 ? value[1] : 0.0f;
        }
        const cuda::Pack<T, 2> stored = cuda::pack_of<T>(value);
        cuda::store_pack(static_cast<T*>(cuda::of_member(call.far_out, call.members.stride)) + offset,
                         stored);
        if constexpr (sums) {
          if (sample >= valid) continue;
          cuda::unpack(stored, value);
          total[0].x += value[0], total[0].y += value[1];
          total[1].x = fmaf(value[0], value[0], total[1].x);
          total[1].y = fmaf(value[1], value[1], total[1].y);
        }
      }
    }
  }
  if constexpr (sums) {
    sum_pairs(total, filters);
    store_sums<2>(
        filters,
        cuda::of_member(call.partials, call.members.stride) + std::int64_t{first} * 2 * call.channels,
        channel, call.channels);
  }
}

template <typename T, int filter>
void start_of(const Call& call, bool sums, cudaStream_t stream) {
  const auto kernel = sums ? depthwise_window<T, filter, true> : depthwise_window<T, filter, false>;
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
