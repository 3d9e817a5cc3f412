// Kernels of depthwise convolutions by strips (depthwise_strips.h).
#pragma once

#include "kernels/conv2d/cuda/depthwise_slide.cuh"

namespace convoy::kernels::conv::strips {

// Stores a row of a strip's outputs. With `sums`, and if the sample is valid (`counts`), also adds
// the outputs and their squares to `total`, for batch norm's sums.
template <typename T, class S, bool sums>
__device__ __forceinline__ void store_line(const Call& call, const float2 (&line)[S::kColumns],
                                           std::int64_t offset, unsigned inside, bool counts,
                                           OutputSums<T>& total) {
#pragma unroll
  for (int b = 0; b < S::kColumns; ++b) {
    if (!(inside >> b & 1u)) continue;
    const float2 stored = store_pair<T>(call, line[b], offset + std::int64_t{b} * call.channels);
    if constexpr (sums) total.add(stored, counts);
  }
}

// Computes forward and backward_data of a depthwise convolution.
template <typename T, class S, bool sums>
__global__ void __launch_bounds__(kMostThreads, resident_blocks(Direction::forward, S::kFilter))
    depthwise_strips(const __grid_constant__ Call call) {
  constexpr int K = S::kFilter;
  // Shared memory holds the filters and, at the end, the sums of all threads.
  using Pair = SumsPair<T>;
  constexpr int kSumPairs = sums ? 2 * kMostThreads * int(sizeof(Pair) / sizeof(float2)) : 0;
  __shared__ __align__(sizeof(Pair))
      float2 shared[S::kTaps * kMostLanes < kSumPairs ? kSumPairs : S::kTaps * kMostLanes];
  const Thread at = thread_of(call);
  const auto* const weights = static_cast<const T*>(moved(call, call.operands.weights));
  const int channel0 = at.channel - 2 * at.lane;
  for (int i = int(threadIdx.x); i < 2 * call.lanes * S::kTaps; i += int(blockDim.x)) {
    const int c = i / S::kTaps, tap = i - c * S::kTaps, at_tap = call.flipped ? S::kTaps - 1 - tap : tap;
    reinterpret_cast<float*>(shared)[at_tap * 2 * call.lanes + c] =
        channel0 + c < call.channels ? cuda::to_float(weights[std::int64_t{channel0} * S::kTaps + i]) : 0.0f;
  }
  __syncthreads();
  const float2* const own = shared + at.lane;
  float2 kept[K == 3 ? S::kTaps : 1];  // filters of 3x3 stay in registers
  if constexpr (K == 3)
#pragma unroll
    for (int tap = 0; tap < S::kTaps; ++tap) kept[tap] = own[tap * call.lanes];
  float2 bias = {0, 0};
  OutputSums<T> total;
  if (call.operands.bias != nullptr && at.active)
    bias = {moved(call, call.operands.bias)[at.channel], moved(call, call.operands.bias)[at.channel + 1]};
  const int valid = sums ? moved(call, call.operands.control)->valid : 0,
            first = int(blockIdx.x) / call.slabs;
  const std::int64_t input_pitch = std::int64_t{call.input_w} * call.channels,
                     output_pitch = std::int64_t{call.output_w} * call.channels;

#pragma unroll 1
  for (int block = first; block * call.strips < call.all_strips(); block += call.row_blocks) {
    const int index = block * call.strips + at.strip;
    if (!at.active || index >= call.all_strips()) break;
    const Strip strip = strip_at<S>(call, index);
    const int input_column = S::input_origin(strip.column, call.padding[1]);
    int input_row = S::input_origin(strip.row, call.padding[0]);
    const unsigned inside = columns_inside(input_column, S::kInputColumns, call.input_w),
                   output_inside = columns_inside(strip.column, S::kColumns, call.output_w);
    const T* from = static_cast<const T*>(moved(call, call.operands.input)) +
                    input_offset(call, strip.sample, input_row, input_column) + at.channel;
    int output_row = strip.row - S::kLead;
    std::int64_t to = output_offset(call, strip.sample, output_row, strip.column) + at.channel;
    const int end = min(strip.row + strip.rows, call.output_h);
    // The line of input that fetch() loads one step ahead.
    StoredPair<T> next[S::kInputColumns];
    const auto fetch = [&] {
      load_line<S::kInputColumns>(from, call.channels,
                                  unsigned(input_row) < unsigned(call.input_h) ? inside : 0u, next);
      ++input_row;
      from += input_pitch;
    };
    float2 result[S::kSlots][S::kColumns];
#pragma unroll
    for (int slot = 0; slot < S::kSlots; ++slot)
#pragma unroll
      for (int b = 0; b < S::kColumns; ++b) result[slot][b] = bias;
    fetch();
#pragma unroll 1
    while (output_row < end) {
#pragma unroll
      for (int step = 0; step < S::kCycle; ++step) {
        if (output_row >= end) break;
#pragma unroll
        for (int i = 0; i < S::kInputRows; ++i) {
          float2 line[S::kInputColumns];
#pragma unroll
          for (int j = 0; j < S::kInputColumns; ++j) line[j] = floats_of(next[j]);
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
                for (int j = 0; j < S::kInputColumns; ++j)
                  if (S::tap(j, b) == s) add_product(result[S::slot(step, live)][b], line[j], weight);
            }
          }
        }
#pragma unroll
        for (int done = 0; done < S::kOutputRows; ++done, ++output_row, to += output_pitch) {
          auto& line = result[S::slot(step, done)];
          if (output_row >= strip.row && output_row < end && output_row >= 0)
            store_line<T, S, sums>(call, line, to, output_inside, strip.sample < valid, total);
#pragma unroll
          for (int b = 0; b < S::kColumns; ++b) line[b] = bias;
        }
      }
    }
  }
  if constexpr (sums) {
    Pair pairs[2];
    total.get(pairs);
    store_sums(pairs, reinterpret_cast<Pair*>(shared), call, at,
               partials_of<decltype(Pair::x)>(call) + std::int64_t{first} * 2 * call.channels);
  }
}

// Computes partial sums of the filters' gradient. The register slots (Slide, depthwise_slide.cuh)
// hold rows of dy.
template <typename T, class S>
__global__ void __launch_bounds__(kMostThreads, resident_blocks(Direction::backward_weights, S::kFilter))
    depthwise_gradient(const __grid_constant__ Call call) {
  constexpr int K = S::kFilter;
  __shared__ float2 shared[K * kMostThreads];
  const Thread at = thread_of(call);
  const int first = int(blockIdx.x) / call.slabs;
  const std::int64_t input_pitch = std::int64_t{call.input_w} * call.channels,
                     output_pitch = std::int64_t{call.output_w} * call.channels;
  float2 gradient[K][K] = {};

#pragma unroll 1
  for (int block = first; block * call.strips < call.all_strips(); block += call.row_blocks) {
    const int index = block * call.strips + at.strip;
    if (!at.active || index >= call.all_strips()) break;
    const Strip strip = strip_at<S>(call, index);
    const int input_column = S::input_origin(strip.column, call.padding[1]);
    int input_row = S::input_origin(strip.row, call.padding[0]), output_row = strip.row;
    const unsigned inside = columns_inside(input_column, S::kInputColumns, call.input_w),
                   output_inside = columns_inside(strip.column, S::kColumns, call.output_w);
    const T* from = static_cast<const T*>(moved(call, call.operands.input)) +
                    input_offset(call, strip.sample, input_row, input_column) + at.channel;
    const T* dy_from = static_cast<const T*>(moved(call, call.operands.dy)) +
                       output_offset(call, strip.sample, output_row, strip.column) + at.channel;
    const int end = min(strip.row + strip.rows, call.output_h);
    StoredPair<T> next[S::kInputColumns], next_dy[S::kColumns];
    const auto fetch = [&] {
      load_line<S::kInputColumns>(from, call.channels,
                                  unsigned(input_row) < unsigned(call.input_h) ? inside : 0u, next);
      ++input_row;
      from += input_pitch;
    };
    const auto fetch_dy = [&] {
      load_line<S::kColumns>(dy_from, call.channels, output_row < end ? output_inside : 0u, next_dy);
      ++output_row;
      dy_from += output_pitch;
    };
    float2 dy[S::kSlots][S::kColumns] = {};
    fetch();
    fetch_dy();
    int steps = end - strip.row + S::kLead;
#pragma unroll 1
    while (steps > 0) {
#pragma unroll
      for (int step = 0; step < S::kCycle; ++step) {
        if (steps-- <= 0) break;
#pragma unroll
        for (int b = 0; b < S::kColumns; ++b) dy[S::slot(step, S::kLive - 1)][b] = floats_of(next_dy[b]);
        fetch_dy();
#pragma unroll
        for (int i = 0; i < S::kInputRows; ++i) {
          float2 line[S::kInputColumns];
#pragma unroll
          for (int j = 0; j < S::kInputColumns; ++j) line[j] = floats_of(next[j]);
          fetch();
#pragma unroll
          for (int live = 0; live < S::kLive; ++live) {
            const int r = S::row_tap(i, live);
            if (r < 0 || r >= K) continue;
#pragma unroll
            for (int j = 0; j < S::kInputColumns; ++j)
#pragma unroll
              for (int b = 0; b < S::kColumns; ++b) {
                const int s = S::tap(j, b);
                if (s >= 0 && s < K) add_product(gradient[r][s], line[j], dy[S::slot(step, live)][b]);
              }
          }
        }
      }
    }
  }
#pragma unroll
  for (int r = 0; r < K; ++r)
    store_sums(gradient[r], shared, call, at,
               partials_of<float>(call) + (std::int64_t{first} * S::kTaps + r * K) * call.channels);
}

template <typename T, int filter>
void start_of(const Call& call, bool sums, cudaStream_t stream) {
  using enum Direction;
  const auto start = [&](auto kernel) {
    cuda::launch(kernel, call.grid(), call.threads(), Stream(stream), call);
  };
  using One = Slide<filter, 1, false, columns_of(forward, filter, 1)>;
  using Two = Slide<filter, 2, false, columns_of(forward, filter, 2)>;
  using Transposed = Slide<filter, 2, true, columns_of(backward_data, filter, 2)>;
  if (call.direction == backward_weights) {
    if (call.stride == 2)
      start(depthwise_gradient<T, Two>);
    else
      start(depthwise_gradient<T, Slide<filter, 1, false, columns_of(backward_weights, filter, 1)>>);
  } else if (call.transposed) {
    start(depthwise_strips<T, Transposed, false>);
  } else if (call.stride == 2 && call.direction == forward) {
    sums ? start(depthwise_strips<T, Two, true>) : start(depthwise_strips<T, Two, false>);
  } else {
    sums ? start(depthwise_strips<T, One, true>) : start(depthwise_strips<T, One, false>);
  }
}

template <int filter>
void start(const Call& call, bool sums, cudaStream_t stream) {
  const auto start = call.type == DType::bf16 ? start_of<cuda::bf16, filter> : start_of<float, filter>;
  start(call, sums, stream);
}

}  // namespace convoy::kernels::conv::strips
