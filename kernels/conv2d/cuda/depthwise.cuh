// The kernels of the depthwise engine.
#pragma once

#include "kernels/conv2d/cuda/depthwise_strips.cuh"

namespace convoy::kernels::conv {

// Stores a line of results, and adds them to the sums of batch norm.
template <typename T, class S, bool sums>
__device__ __forceinline__ void store_line(const DepthwiseCall& call, const float2 (&line)[S::kColumns],
                                           std::int64_t offset, unsigned inside, bool counts,
                                           float2 (&total)[2]) {
#pragma unroll
  for (int b = 0; b < S::kColumns; ++b) {
    if (!(inside >> b & 1u)) continue;
    const std::int64_t at = offset + std::int64_t{b} * call.channels;
    float value[2] = {line[b].x, line[b].y};
    if (call.relu) value[0] = cuda::rectified(value[0]), value[1] = cuda::rectified(value[1]);
    if (call.mask != nullptr) {
      const float2 mask =
          floats_of(load_stored(static_cast<const T*>(cuda::of_member(call.mask, call.members.stride)) + at));
      value[0] = mask.x > 0 ? value[0] : 0.0f;
      value[1] = mask.y > 0 ? value[1] : 0.0f;
    }
    const cuda::Pack<T, 2> stored = cuda::pack_of<T>(value);
    cuda::store_pack(static_cast<T*>(cuda::of_member(call.far_out, call.members.stride)) + at, stored);
    if constexpr (sums) {
      cuda::unpack(stored, value);
      const float2 pair = counts ? float2{value[0], value[1]} : float2{0, 0};
      total[0].x += pair.x, total[0].y += pair.y;
      add_product(total[1], pair, pair);
    }
  }
}

// forward and backward_data.
template <typename T, class S, bool sums>
__global__ void __launch_bounds__(kDepthwiseThreads, depthwise_blocks(Direction::forward, S::kFilter))
    depthwise_window(const __grid_constant__ DepthwiseCall call) {
  constexpr int K = S::kFilter;
  __shared__ float2 shared[S::kTaps * kDepthwiseLanes < 2 * kDepthwiseThreads ? 2 * kDepthwiseThreads
                                                                              : S::kTaps * kDepthwiseLanes];
  const DepthwiseThread at = thread_of(call);
  const auto* const weights = static_cast<const T*>(cuda::of_member(call.weights, call.members.stride));
  const int channel0 = at.channel - 2 * at.lane;
  for (int i = int(threadIdx.x); i < 2 * call.lanes * S::kTaps; i += int(blockDim.x)) {
    const int c = i / S::kTaps, tap = i - c * S::kTaps, turned = call.turned ? S::kTaps - 1 - tap : tap;
    reinterpret_cast<float*>(shared)[turned * 2 * call.lanes + c] =
        channel0 + c < call.channels ? cuda::to_float(weights[std::int64_t{channel0} * S::kTaps + i]) : 0.0f;
  }
  __syncthreads();
  const float2* const own = shared + at.lane;
  float2 kept[K == 3 ? S::kTaps : 1];  // small filters stay in registers
  if constexpr (K == 3)
#pragma unroll
    for (int tap = 0; tap < S::kTaps; ++tap) kept[tap] = own[tap * call.lanes];
  float2 bias = {0, 0}, total[2] = {};
  if (call.bias != nullptr && at.active)
    bias = {cuda::of_member(call.bias, call.members.stride)[at.channel],
            cuda::of_member(call.bias, call.members.stride)[at.channel + 1]};
  const int valid = sums ? cuda::of_member(call.control, call.members.stride)->valid : 0,
            first = int(blockIdx.x) / call.slabs;
  const std::int64_t near_pitch = std::int64_t{call.near_w} * call.channels,
                     far_pitch = std::int64_t{call.far_w} * call.channels;

#pragma unroll 1
  for (int block = first; block * call.strips < call.all_strips(); block += call.row_blocks) {
    const int index = block * call.strips + at.strip;
    if (!at.active || index >= call.all_strips()) break;
    const Strip strip = strip_at<S>(call, index);
    const int near_column = S::near_origin(strip.column, call.padding[1]);
    int near_row = S::near_origin(strip.row, call.padding[0]);
    const unsigned inside = columns_inside(near_column, S::kNearColumns, call.near_w),
                   far_inside = columns_inside(strip.column, S::kColumns, call.far_w);
    const T* from =
        static_cast<const T*>(cuda::of_member(call.near, call.members.stride)) +
        ((std::int64_t{strip.sample} * call.near_h + near_row) * call.near_w + near_column) * call.channels +
        at.channel;
    int far_row = strip.row - S::kLag;
    std::int64_t to =
        ((std::int64_t{strip.sample} * call.far_h + far_row) * call.far_w + strip.column) * call.channels +
        at.channel;
    const int end = min(strip.row + strip.rows, call.far_h);
    // Reads the next near line.
    StoredPair<T> next[S::kNearColumns];
    const auto fetch = [&] {
      load_line<S::kNearColumns>(from, call.channels,
                                 unsigned(near_row) < unsigned(call.near_h) ? inside : 0u, next);
      ++near_row;
      from += near_pitch;
    };
    float2 result[S::kSlots][S::kColumns];
#pragma unroll
    for (int slot = 0; slot < S::kSlots; ++slot)
#pragma unroll
      for (int b = 0; b < S::kColumns; ++b) result[slot][b] = bias;
    fetch();
#pragma unroll 1
    while (far_row < end) {
#pragma unroll
      for (int step = 0; step < S::kCycle; ++step) {
        if (far_row >= end) break;
#pragma unroll
        for (int i = 0; i < S::kNear; ++i) {
          float2 line[S::kNearColumns];
#pragma unroll
          for (int j = 0; j < S::kNearColumns; ++j) line[j] = floats_of(next[j]);
          fetch();
#pragma unroll
          for (int live = 0; live < S::kLive; ++live) {
            const int r = S::row_tap(i, live);
            if (r < 0 || r >= K) continue;
#pragma unroll
            for (int s = 0; s < K; ++s) {
              float2 weight;
              if constexpr (K == 3)
                weight = kept[r * K + s];
              else
                weight = own[(r * K + s) * call.lanes];
#pragma unroll
              for (int b = 0; b < S::kColumns; ++b)
#pragma unroll
                for (int j = 0; j < S::kNearColumns; ++j)
                  if (S::column_tap(j, b) == s) add_product(result[S::slot(step, live)][b], line[j], weight);
            }
          }
        }
#pragma unroll
        for (int done = 0; done < S::kDone; ++done, ++far_row, to += far_pitch) {
          auto& line = result[S::slot(step, done)];
          if (far_row >= strip.row && far_row < end && far_row >= 0)
            store_line<T, S, sums>(call, line, to, far_inside, strip.sample < valid, total);
#pragma unroll
          for (int b = 0; b < S::kColumns; ++b) line[b] = bias;
        }
      }
    }
  }
  if constexpr (sums)
    store_sums<2>(
        total, shared, call, at,
        cuda::of_member(call.partials, call.members.stride) + std::int64_t{first} * 2 * call.channels);
}

// backward_weights: partial sums of the filters' gradient. The slots hold lines of dy.
template <typename T, class S>
__global__ void __launch_bounds__(kDepthwiseThreads,
                                  depthwise_blocks(Direction::backward_weights, S::kFilter))
    depthwise_gradient(const __grid_constant__ DepthwiseCall call) {
  constexpr int K = S::kFilter;
  __shared__ float2 shared[K * kDepthwiseThreads];
  const DepthwiseThread at = thread_of(call);
  const int first = int(blockIdx.x) / call.slabs;
  const std::int64_t near_pitch = std::int64_t{call.near_w} * call.channels,
                     far_pitch = std::int64_t{call.far_w} * call.channels;
  float2 gradient[K][K] = {};

#pragma unroll 1
  for (int block = first; block * call.strips < call.all_strips(); block += call.row_blocks) {
    const int index = block * call.strips + at.strip;
    if (!at.active || index >= call.all_strips()) break;
    const Strip strip = strip_at<S>(call, index);
    const int near_column = S::near_origin(strip.column, call.padding[1]);
    int near_row = S::near_origin(strip.row, call.padding[0]), far_row = strip.row;
    const unsigned inside = columns_inside(near_column, S::kNearColumns, call.near_w),
                   far_inside = columns_inside(strip.column, S::kColumns, call.far_w);
    const T* from =
        static_cast<const T*>(cuda::of_member(call.near, call.members.stride)) +
        ((std::int64_t{strip.sample} * call.near_h + near_row) * call.near_w + near_column) * call.channels +
        at.channel;
    const T* far =
        static_cast<const T*>(cuda::of_member(call.far_in, call.members.stride)) +
        ((std::int64_t{strip.sample} * call.far_h + far_row) * call.far_w + strip.column) * call.channels +
        at.channel;
    const int end = min(strip.row + strip.rows, call.far_h);
    StoredPair<T> next[S::kNearColumns], next_far[S::kColumns];
    const auto fetch = [&] {
      load_line<S::kNearColumns>(from, call.channels,
                                 unsigned(near_row) < unsigned(call.near_h) ? inside : 0u, next);
      ++near_row;
      from += near_pitch;
    };
    const auto fetch_far = [&] {
      load_line<S::kColumns>(far, call.channels, far_row < end ? far_inside : 0u, next_far);
      ++far_row;
      far += far_pitch;
    };
    float2 dy[S::kSlots][S::kColumns] = {};
    fetch();
    fetch_far();
    int steps = end - strip.row + S::kLag;
#pragma unroll 1
    while (steps > 0) {
#pragma unroll
      for (int step = 0; step < S::kCycle; ++step) {
        if (steps-- <= 0) break;
#pragma unroll
        for (int b = 0; b < S::kColumns; ++b) dy[S::slot(step, S::kLive - 1)][b] = floats_of(next_far[b]);
        fetch_far();
#pragma unroll
        for (int i = 0; i < S::kNear; ++i) {
          float2 line[S::kNearColumns];
#pragma unroll
          for (int j = 0; j < S::kNearColumns; ++j) line[j] = floats_of(next[j]);
          fetch();
#pragma unroll
          for (int live = 0; live < S::kLive; ++live) {
            const int r = S::row_tap(i, live);
            if (r < 0 || r >= K) continue;
#pragma unroll
            for (int j = 0; j < S::kNearColumns; ++j)
#pragma unroll
              for (int b = 0; b < S::kColumns; ++b) {
                const int s = S::column_tap(j, b);
                if (s >= 0 && s < K) add_product(gradient[r][s], line[j], dy[S::slot(step, live)][b]);
              }
          }
        }
      }
    }
  }
#pragma unroll
  for (int r = 0; r < K; ++r)
    store_sums<K>(gradient[r], shared, call, at,
                  cuda::of_member(call.partials, call.members.stride) +
                      (std::int64_t{first} * S::kTaps + r * K) * call.channels);
}

template <typename T, int filter>
void start_depthwise_of(const DepthwiseCall& call, bool sums, cudaStream_t stream) {
  using enum Direction;
  const auto start = [&](auto kernel) {
    cuda::launch(kernel, call.grid(), call.threads(), Stream(stream), call);
  };
  using One = Slide<filter, 1, false, depthwise_columns(forward, filter, 1)>;
  using Two = Slide<filter, 2, false, depthwise_columns(forward, filter, 2)>;
  using Transposed = Slide<filter, 2, true, depthwise_columns(backward_data, filter, 2)>;
  if (call.direction == backward_weights) {
    if (call.stride == 2)
      start(depthwise_gradient<T, Two>);
    else
      start(depthwise_gradient<T, Slide<filter, 1, false, depthwise_columns(backward_weights, filter, 1)>>);
  } else if (call.transposed) {
    start(depthwise_window<T, Transposed, false>);
  } else if (call.stride == 2 && call.direction == forward) {
    sums ? start(depthwise_window<T, Two, true>) : start(depthwise_window<T, Two, false>);
  } else {
    sums ? start(depthwise_window<T, One, true>) : start(depthwise_window<T, One, false>);
  }
}

template <int filter>
void start_depthwise(const DepthwiseCall& call, bool sums, cudaStream_t stream) {
  const auto start =
      call.type == DType::bf16 ? start_depthwise_of<cuda::bf16, filter> : start_depthwise_of<float, filter>;
  start(call, sums, stream);
}

}  // namespace convoy::kernels::conv
