// The kernels of the depthwise engine.
#pragma once

#include "kernels/conv2d/cuda/depthwise_tiles.cuh"

namespace convoy::kernels::conv {

// forward and backward_data.
template <typename T, class F, bool sums>
__global__ void __launch_bounds__(depthwise_threads(Direction::forward, F::kFilter), 2)
    depthwise_window(const __grid_constant__ DepthwiseCall call) {
  extern __shared__ float4 dynamic[];
  constexpr int K = F::kFilter;
  const auto* const near = static_cast<const T*>(call.near);
  T* const stages = reinterpret_cast<T*>(dynamic);
  const int stage_elements = int(call.near_elements());
  auto* const filters = reinterpret_cast<float*>(stages + 2 * stage_elements);
  const int slab = int(blockIdx.x) % call.slabs, first = int(blockIdx.x) / call.slabs;
  const int channel = slab * kDepthwiseChannels;
  const DepthwiseThread at = thread_of(call);
  const auto fetch = [&](int tile, int which) {
    if (tile < call.tiles()) {
      const DepthwisePlace place = place_of<F>(call, tile);
      stage(call, near, call.near_h, call.near_w, place.sample, F::near_origin(place.row, call.padding[0]),
            F::near_origin(place.column, call.padding[1]), call.tile_rows, call.tile_columns, channel,
            stages + which * stage_elements);
    }
    gemm::copies_commit();
  };
  fetch(first, 0);
  for (int i = int(threadIdx.x); i < F::kTaps * kDepthwiseChannels; i += int(blockDim.x)) {
    const int c = i / F::kTaps, tap = i % F::kTaps;
    const float value =
        channel + c < call.channels
            ? cuda::to_float(static_cast<const T*>(call.weights)[std::int64_t{channel + c} * F::kTaps + tap])
            : 0.0f;
    filters[(call.turned ? F::kTaps - 1 - tap : tap) * kDepthwiseChannels + c] = value;
  }
  __syncthreads();
  const float* const own = filters + 2 * at.lane;
  float2 kept[K == 3 ? F::kTaps : 1];  // small filters stay in registers
  if constexpr (K == 3)
#pragma unroll
    for (int tap = 0; tap < F::kTaps; ++tap) kept[tap] = load_pair(own + tap * kDepthwiseChannels);
  const int c = channel + 2 * at.lane;
  float2 bias = {0, 0};
  if (call.bias != nullptr && c < call.channels) bias = {call.bias[c], call.bias[c + 1]};
  float2 total[2] = {};
  const int valid = sums ? call.control->valid : 0;

  int which = 0;
#pragma unroll 1
  for (int tile = first; tile < call.tiles(); tile += call.row_blocks, which ^= 1) {
    fetch(tile + call.row_blocks, which ^ 1);
    gemm::copies_wait<1>();
    __syncthreads();
    const T* const base =
        stages + which * stage_elements +
        ((at.image * call.tile_rows + at.y * F::kStepRows) * call.tile_columns + at.x * F::kStepColumns) *
            kDepthwiseChannels +
        2 * at.lane;
    float2 result[F::kRows][F::kColumns];
#pragma unroll
    for (int a = 0; a < F::kRows; ++a)
#pragma unroll
      for (int b = 0; b < F::kColumns; ++b) result[a][b] = bias;
#pragma unroll
    for (int i = 0; i < F::kNearRows; ++i) {
      float2 line[F::kNearColumns];
#pragma unroll
      for (int j = 0; j < F::kNearColumns; ++j)
        line[j] = load_pair(base + (i * call.tile_columns + j) * kDepthwiseChannels);
#pragma unroll
      for (int a = 0; a < F::kRows; ++a) {
        const int r = F::tap(i, a);
        if (r < 0 || r >= K) continue;
#pragma unroll
        for (int s = 0; s < K; ++s) {
          float2 weight;
          if constexpr (K == 3)
            weight = kept[r * K + s];
          else
            weight = load_pair(own + (r * K + s) * kDepthwiseChannels);
#pragma unroll
          for (int b = 0; b < F::kColumns; ++b)
#pragma unroll
            for (int j = 0; j < F::kNearColumns; ++j)
              if (F::tap(j, b) == s) {
                result[a][b].x = fmaf(line[j].x, weight.x, result[a][b].x);
                result[a][b].y = fmaf(line[j].y, weight.y, result[a][b].y);
              }
        }
      }
    }
    __syncthreads();  // the stage may be overwritten
    const DepthwisePlace place = place_of<F>(call, tile);
    const int sample = place.sample + at.image;
    const int row = place.row + at.y * F::kRows, column = place.column + at.x * F::kColumns;
    if (sample >= call.samples || c >= call.channels) continue;
#pragma unroll
    for (int a = 0; a < F::kRows; ++a) {
      if (unsigned(row + a) >= unsigned(call.far_h)) continue;
      const std::int64_t line =
          ((std::int64_t{sample} * call.far_h + row + a) * call.far_w + column) * call.channels + c;
#pragma unroll
      for (int b = 0; b < F::kColumns; ++b) {
        if (unsigned(column + b) >= unsigned(call.far_w)) continue;
        const std::int64_t offset = line + std::int64_t{b} * call.channels;
        float value[2] = {result[a][b].x, result[a][b].y};
        if (call.relu) value[0] = cuda::rectified(value[0]), value[1] = cuda::rectified(value[1]);
        if (call.mask != nullptr) {
          const float2 mask = load_pair(static_cast<const T*>(call.mask) + offset);
          value[0] = mask.x > 0 ? value[0] : 0.0f;
          value[1] = mask.y > 0 ? value[1] : 0.0f;
        }
        const cuda::Pack<T, 2> stored = cuda::pack_of<T>(value);
        cuda::store_pack(static_cast<T*>(call.far_out) + offset, stored);
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
    store_sums<2>(filters, call.partials + std::int64_t{first} * 2 * call.channels, channel, call.channels);
  }
}

// backward_weights: partial sums of the filters' gradient.
template <typename T, class F>
__global__ void __launch_bounds__(depthwise_threads(Direction::backward_weights, F::kFilter),
                                  F::kFilter == 5 ? 3 : 2)
    depthwise_gradient(const __grid_constant__ DepthwiseCall call) {
  extern __shared__ float4 dynamic[];
  constexpr int K = F::kFilter;
  const auto* const near = static_cast<const T*>(call.near);
  const auto* const far = static_cast<const T*>(call.far_in);
  T* const stages = reinterpret_cast<T*>(dynamic);
  const int near_elements = int(call.near_elements()),
            stage_elements = near_elements + int(call.far_elements());
  const int slab = int(blockIdx.x) % call.slabs, first = int(blockIdx.x) / call.slabs;
  const int channel = slab * kDepthwiseChannels;
  const int far_rows = call.down * F::kRows, far_columns = call.across * F::kColumns;
  const DepthwiseThread at = thread_of(call);
  const auto fetch = [&](int tile, int which) {
    if (tile < call.tiles()) {
      const DepthwisePlace place = place_of<F>(call, tile);
      T* const to = stages + which * stage_elements;
      stage(call, near, call.near_h, call.near_w, place.sample, F::near_origin(place.row, call.padding[0]),
            F::near_origin(place.column, call.padding[1]), call.tile_rows, call.tile_columns, channel, to);
      stage(call, far, call.far_h, call.far_w, place.sample, place.row, place.column, far_rows, far_columns,
            channel, to + near_elements);
    }
    gemm::copies_commit();
  };
  fetch(first, 0);
  float2 gradient[K][K] = {};
  int which = 0;
#pragma unroll 1
  for (int tile = first; tile < call.tiles(); tile += call.row_blocks, which ^= 1) {
    fetch(tile + call.row_blocks, which ^ 1);
    gemm::copies_wait<1>();
    __syncthreads();
    const T* const staged = stages + which * stage_elements + 2 * at.lane;
    const T* const base = staged + ((at.image * call.tile_rows + at.y * F::kStepRows) * call.tile_columns +
                                    at.x * F::kStepColumns) *
                                       kDepthwiseChannels;
    const T* const far_base =
        staged + near_elements +
        ((at.image * far_rows + at.y * F::kRows) * far_columns + at.x * F::kColumns) * kDepthwiseChannels;
    float2 dy[F::kRows][F::kColumns];
#pragma unroll
    for (int a = 0; a < F::kRows; ++a)
#pragma unroll
      for (int b = 0; b < F::kColumns; ++b)
        dy[a][b] = load_pair(far_base + (a * far_columns + b) * kDepthwiseChannels);
#pragma unroll
    for (int i = 0; i < F::kNearRows; ++i)
#pragma unroll
      for (int j = 0; j < F::kNearColumns; ++j) {
        const float2 x = load_pair(base + (i * call.tile_columns + j) * kDepthwiseChannels);
#pragma unroll
        for (int a = 0; a < F::kRows; ++a) {
          const int r = F::tap(i, a);
          if (r < 0 || r >= K) continue;
#pragma unroll
          for (int b = 0; b < F::kColumns; ++b) {
            const int s = F::tap(j, b);
            if (s < 0 || s >= K) continue;
            gradient[r][s].x = fmaf(x.x, dy[a][b].x, gradient[r][s].x);
            gradient[r][s].y = fmaf(x.y, dy[a][b].y, gradient[r][s].y);
          }
        }
      }
    __syncthreads();  // the stage may be overwritten
  }
  auto* const shared = reinterpret_cast<float*>(stages + 2 * stage_elements);
#pragma unroll
  for (int r = 0; r < K; ++r) {
    sum_pairs(gradient[r], shared);
    store_sums<K>(shared, call.partials + (std::int64_t{first} * F::kTaps + r * K) * call.channels, channel,
                  call.channels);
  }
}

template <typename Kernel>
void start_depthwise_kernel(Kernel kernel, const DepthwiseCall& call, cudaStream_t stream) {
  const auto bytes = int(call.shared_bytes());
  CONVOY_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  kernel<<<unsigned(call.slabs * call.row_blocks), call.threads(), std::size_t(bytes), stream>>>(call);
  CONVOY_CUDA(cudaGetLastError());
}

template <typename T, int filter, int rows>
void start_depthwise_rows(const DepthwiseCall& call, bool sums, cudaStream_t stream) {
  using One = Frame<filter, 1, false, rows, 7>;
  using Two = Frame<filter, 2, false, 2, 7>;
  using Transposed = Frame<filter, 2, true, 2, 8>;
  const auto start = [&](auto kernel) { start_depthwise_kernel(kernel, call, stream); };
  if (call.direction == Direction::backward_weights) {
    if (call.frame.stride == 2)
      start(depthwise_gradient<T, Two>);
    else
      start(depthwise_gradient<T, Frame<filter, 1, false, 2, 7>>);
  } else if (call.frame.transposed) {
    start(depthwise_window<T, Transposed, false>);
  } else if (call.frame.stride == 2) {
    sums ? start(depthwise_window<T, Two, true>) : start(depthwise_window<T, Two, false>);
  } else {
    sums ? start(depthwise_window<T, One, true>) : start(depthwise_window<T, One, false>);
  }
}

template <int filter>
void start_depthwise(const DepthwiseCall& call, bool sums, cudaStream_t stream) {
  const auto start = [&]<typename T>(T) {
    if constexpr (filter > 3)
      if (call.frame.rows == 4) return start_depthwise_rows<T, filter, 4>(call, sums, stream);
    start_depthwise_rows<T, filter, 2>(call, sums, stream);
  };
  call.type == DType::bf16 ? start(cuda::bf16{}) : start(float{});
}

}  // namespace convoy::kernels::conv
