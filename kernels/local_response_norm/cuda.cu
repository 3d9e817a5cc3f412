// Local response normalisation on the device, for channels_last images. A thread computes 16 bytes
// of channels and reads the neighbouring channels from the cache. Backward computes the scales, k +
// alpha / size * (sum of squares), from x once more, because reading them would cost more. So aux
// is unused.
#include "kernels/device/cuda_launch.cuh"
#include "kernels/device/divider.h"
#include "kernels/local_response_norm/local_response_norm.h"

namespace convoy::kernels::cuda {
namespace {

struct Windows {
  int channels, before, after;  // the window of channel c is [c - before, c + after]
  float alpha, beta, k;         // alpha is already divided by the window's size
  Divider row;                  // divides by the packs (or single channels) in a pixel
  std::int64_t items;
};

// Returns 1 / sqrt(value) by the hardware's approximation, with an error of at most two units in
// the last place.
__device__ __forceinline__ float inverse_root(float value) {
  float root;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(value));
  return root;
}

// The results of inverse_power(): scale ^ -beta and 1 / scale. With kUsual, beta is 0.75, for which
// square roots suffice.
struct Power {
  float power, inverse;
};
template <bool kUsual>
__device__ __forceinline__ Power inverse_power(float scale, float beta) {
  const float root = inverse_root(scale), inverse = root * root;
  return {kUsual ? inverse * inverse_root(root) : exp2f(-beta * log2f(scale)), inverse};
}

// Loads the V channels from `channel` on of the pixel that begins at `row`. Loads zeros outside the
// pixel, so that windows at the edge need no special case.
template <int V, typename T>
__device__ __forceinline__ void load_or_zero(const T* row, int channel, int channels, float* to) {
  float value[V];
  unpack(channel >= 0 && channel < channels ? load_pack<V>(row + channel) : zero_pack<T, V>(), value);
#pragma unroll
  for (int i = 0; i < V; ++i) to[i] = value[i];
}

// Adds up windows: sums[i] is the sum of value[i + reach + j] over j from -before to after.
// `before` and `after` are at most `reach`.
template <int reach, int count>
__device__ __forceinline__ void window_sums(const float (&value)[count + 2 * reach], int before, int after,
                                            float (&sums)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) sums[i] = 0;
#pragma unroll
  for (int j = -reach; j <= reach; ++j)
    if (j >= -before && j <= after)
#pragma unroll
      for (int i = 0; i < count; ++i) sums[i] += value[i + reach + j];
}

// Computes y, for windows that extend at most kReach <= V / 2 channels to either side.
template <typename T, int V, int kReach, bool kUsual>
__global__ void forward(const T* x, T* y, const __grid_constant__ Windows w, std::ptrdiff_t member_stride) {
  move_to_member(member_stride, x, y);
  const std::int64_t turn = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t item = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; item < w.items;
       item += turn) {
    const std::uint32_t pixel = w.row(static_cast<std::uint32_t>(item));
    const int channel = static_cast<int>(static_cast<std::uint32_t>(item) - pixel * w.row.divisor) * V;
    const T* row = x + std::int64_t{pixel} * w.channels;
    float values[3 * V], squares[V + 2 * kReach], sums[V];
#pragma unroll
    for (int k = 0; k < 3; ++k) load_or_zero<V>(row, channel + (k - 1) * V, w.channels, values + k * V);
#pragma unroll
    for (int i = 0; i < V + 2 * kReach; ++i) squares[i] = values[V - kReach + i] * values[V - kReach + i];
    window_sums<kReach, V>(squares, w.before, w.after, sums);
#pragma unroll
    for (int i = 0; i < V; ++i)
      sums[i] = values[V + i] * inverse_power<kUsual>(fmaf(w.alpha, sums[i], w.k), w.beta).power;
    store_pack(y + item * V, pack_of<T>(sums));
  }
}

// Computes dx_c = dy_c s_c^-beta - 2 alpha beta / size x_c * (sum of dy_j x_j s_j^(-beta - 1)). s
// is the scale. The sum runs over the channels j whose windows contain c, which are those from c -
// after to c + before.
template <typename T, int V, int kReach, bool kUsual>
__global__ void backward(const T* x, const T* dy, T* dx, const __grid_constant__ Windows w,
                         std::ptrdiff_t member_stride) {
  move_to_member(member_stride, x, dy, dx);
  constexpr int kMiddle = V + 2 * kReach;  // channels whose scales this thread needs
  const std::int64_t turn = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t item = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; item < w.items;
       item += turn) {
    const std::uint32_t pixel = w.row(static_cast<std::uint32_t>(item));
    const int channel = static_cast<int>(static_cast<std::uint32_t>(item) - pixel * w.row.divisor) * V;
    const std::int64_t row = std::int64_t{pixel} * w.channels;
    float xs[3 * V], dys[3 * V], squares[kMiddle + 2 * kReach], scales[kMiddle], through[kMiddle], sums[V];
#pragma unroll
    for (int k = 0; k < 3; ++k) {
      load_or_zero<V>(x + row, channel + (k - 1) * V, w.channels, xs + k * V);
      load_or_zero<V>(dy + row, channel + (k - 1) * V, w.channels, dys + k * V);
    }
#pragma unroll
    for (int i = 0; i < kMiddle + 2 * kReach; ++i)
      squares[i] = xs[V - 2 * kReach + i] * xs[V - 2 * kReach + i];
    window_sums<kReach, kMiddle>(squares, w.before, w.after, scales);
    float powers[V];
#pragma unroll
    for (int i = 0; i < kMiddle; ++i) {
      const int at = V - kReach + i;
      const Power p = inverse_power<kUsual>(fmaf(w.alpha, scales[i], w.k), w.beta);
      const float product = dys[at] * xs[at];
      // If the scale is zero, this test avoids 0 * infinity, which is NaN.
      through[i] = product == 0 ? 0 : product * p.power * p.inverse;
      if (i >= kReach && i < kReach + V) powers[i - kReach] = p.power;
    }
    window_sums<kReach, V>(through, w.after, w.before, sums);
#pragma unroll
    for (int i = 0; i < V; ++i) sums[i] = dys[V + i] * powers[i] - 2 * w.alpha * w.beta * xs[V + i] * sums[i];
    store_pack(dx + item * V, pack_of<T>(sums));
  }
}

// The kernels below support windows of any size and any number of channels. A thread computes one
// element.
template <typename T>
__device__ float scale_at(const T* row, int channel, const Windows& w) {
  float sum = 0;
  for (int j = max(channel - w.before, 0); j <= min(channel + w.after, w.channels - 1); ++j)
    sum = fmaf(to_float(row[j]), to_float(row[j]), sum);
  return fmaf(w.alpha, sum, w.k);
}

template <typename T>
__global__ void forward_elements(const T* x, T* y, Windows w, std::ptrdiff_t member_stride) {
  move_to_member(member_stride, x, y);
  const std::int64_t turn = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < w.items; i += turn) {
    const std::int64_t first = i / w.channels * w.channels;
    const float value =
        to_float(x[i]) *
        inverse_power<false>(scale_at(x + first, static_cast<int>(i - first), w), w.beta).power;
    store_pack(y + i, pack_of<T, 1>({value}));
  }
}

template <typename T>
__global__ void backward_elements(const T* x, const T* dy, T* dx, Windows w, std::ptrdiff_t member_stride) {
  move_to_member(member_stride, x, dy, dx);
  const std::int64_t turn = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < w.items; i += turn) {
    const std::int64_t first = i / w.channels * w.channels;
    const int channel = static_cast<int>(i - first);
    float through = 0;
    for (int j = max(channel - w.after, 0); j <= min(channel + w.before, w.channels - 1); ++j) {
      const float product = to_float(dy[first + j]) * to_float(x[first + j]);
      if (product == 0) continue;
      const Power p = inverse_power<false>(scale_at(x + first, j, w), w.beta);
      through += product * p.power * p.inverse;
    }
    const float power = inverse_power<false>(scale_at(x + first, channel, w), w.beta).power;
    const float value = to_float(dy[i]) * power - 2 * w.alpha * w.beta * to_float(x[i]) * through;
    store_pack(dx + i, pack_of<T, 1>({value}));
  }
}

// Says which kernel to launch. The kernel for packs of 16 bytes is faster than the kernel for
// single elements, but requires whole packs and short windows.
struct Plan {
  DType type;
  int reach;  // kReach of the kernel for packs; 0 selects the kernel for single elements
  Windows windows;
};

Plan plan_of(const char* operation, const LocalResponseNormProblem& problem, const Shape& shape, DType type) {
  const ImageExtents e = image_extents(shape);
  const int width = type == DType::bf16 ? kPackWidth<bf16> : kPackWidth<float>;
  const int before = problem.size / 2, after = (problem.size - 1) / 2;
  const bool wide = e.c % width == 0 && before <= width / 2;
  Windows windows{static_cast<int>(e.c),
                  before,
                  after,
                  problem.alpha / static_cast<float>(problem.size),
                  problem.beta,
                  problem.k,
                  Divider(wide ? e.c / width : 1),
                  wide ? shape.elements() / width : shape.elements()};
  if (wide) require_below_2g(operation, windows.items);
  return {type, !wide ? 0 : before <= 2 ? 2 : 4, windows};
}

// Returns the kernel for an element type and a plan.
template <typename T>
auto* forward_kernel(const Plan& plan) {
  constexpr int kV = kPackWidth<T>;
  if (plan.reach == 0) return forward_elements<T>;
  if (plan.reach > 2) return forward<T, kV, kV / 2, false>;
  return plan.windows.beta == 0.75f ? forward<T, kV, 2, true> : forward<T, kV, 2, false>;
}
template <typename T>
auto* backward_kernel(const Plan& plan) {
  constexpr int kV = kPackWidth<T>;
  if (plan.reach == 0) return backward_elements<T>;
  if (plan.reach > 2) return backward<T, kV, kV / 2, false>;
  return plan.windows.beta == 0.75f ? backward<T, kV, 2, true> : backward<T, kV, 2, false>;
}

}  // namespace

Kernel local_response_norm_forward(const LocalResponseNormProblem& problem, KernelRequest& request) {
  const char* operation = "local_response_norm_forward";
  require_counts(operation, request, 1, 2);
  const Shape shape = request.inputs[0].shape;
  request.outputs[1] = {DType::f32, {1}, Layout::row_major, nullptr};
  require_activation_layouts(operation, request);
  require_shape(operation, "y", request.outputs[0], shape);
  const DType type = common_dtype(operation, {&request.inputs[0], &request.outputs[0]});
  const Plan plan = plan_of(operation, problem, shape, type);
  return device_kernel([plan](const BoundOperands& b, Stream stream) {
    const auto run = [&](auto element) {
      using T = decltype(element);
      launch(forward_kernel<T>(plan), grid_for(plan.windows.items), kThreads, stream, b.members, b.in<T>(0),
             b.out<T>(0), plan.windows);
    };
    plan.type == DType::bf16 ? run(bf16{}) : run(float{});
  });
}

Kernel local_response_norm_backward(const LocalResponseNormProblem& problem, KernelRequest& request) {
  const char* operation = "local_response_norm_backward";
  require_counts(operation, request, 4, 1);
  auto& in = request.inputs;
  const Shape shape = in[0].shape;
  require_activation_layouts(operation, request);
  for (const int at : {1, 3}) require_shape(operation, "an input", in[at], shape);
  require_shape(operation, "dx", request.outputs[0], shape);
  const DType type = common_dtype(operation, {&in[0], &in[1], &in[3], &request.outputs[0]});
  const Plan plan = plan_of(operation, problem, shape, type);
  return device_kernel([plan](const BoundOperands& b, Stream stream) {
    const auto run = [&](auto element) {
      using T = decltype(element);
      launch(backward_kernel<T>(plan), grid_for(plan.windows.items), kThreads, stream, b.members, b.in<T>(0),
             b.in<T>(3), b.out<T>(0), plan.windows);
    };
    plan.type == DType::bf16 ? run(bf16{}) : run(float{});
  });
}

}  // namespace convoy::kernels::cuda
