// Softmax on the device. A warp computes one row, which is the channels of a pixel. It reads the
// row several times: first from memory, and then from the L1 cache.
#include "kernels/device/cuda_launch.cuh"
#include "kernels/softmax/softmax.h"

namespace convoy::kernels::cuda {
namespace {

template <typename Combine>
__device__ __forceinline__ float over_warp(float value, Combine combine) {
#pragma unroll
  for (int lane = 16; lane > 0; lane /= 2) value = combine(value, __shfl_xor_sync(0xffffffffu, value, lane));
  return value;
}

// Returns the row that the thread's warp computes. If it is not below the number of rows, the warp
// must return.
__device__ __forceinline__ std::int64_t row_of_warp() {
  return std::int64_t{blockIdx.x} * (kThreads / 32) + static_cast<int>(threadIdx.x) / 32;
}

template <typename T, int V>
__global__ void forward(const T* x, T* y, std::int64_t rows, int channels, std::ptrdiff_t member_stride) {
  move_to_member(member_stride, x, y);
  const std::int64_t row = row_of_warp();
  if (row >= rows) return;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const T* const from = x + row * channels;
  const auto maximum = [](float a, float b) { return a > b || a != a ? a : b; };  // keeps a NaN
  const auto plus = [](float a, float b) { return a + b; };
  float most = -INFINITY, sum = 0, value[V];
  for (int c = lane * V; c < channels; c += 32 * V) {
    unpack(load_pack<V>(from + c), value);
#pragma unroll
    for (int i = 0; i < V; ++i) most = maximum(value[i], most);
  }
  most = over_warp(most, maximum);
  for (int c = lane * V; c < channels; c += 32 * V) {
    unpack(load_pack<V>(from + c), value);
#pragma unroll
    for (int i = 0; i < V; ++i) sum += expf(value[i] - most);
  }
  const float factor = 1 / over_warp(sum, plus);
  for (int c = lane * V; c < channels; c += 32 * V) {
    unpack(load_pack<V>(from + c), value);
#pragma unroll
    for (int i = 0; i < V; ++i) value[i] = expf(value[i] - most) * factor;
    store_pack(y + row * channels + c, pack_of<T>(value));
  }
}

template <typename T, int V>
__global__ void backward(const T* y, const T* dy, T* dx, std::int64_t rows, int channels,
                         std::ptrdiff_t member_stride) {
  move_to_member(member_stride, y, dy, dx);
  const std::int64_t row = row_of_warp();
  if (row >= rows) return;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float sum = 0, value[V], gradient[V];
  const auto load = [&](int c) {
    unpack(load_pack<V>(y + row * channels + c), value);
    unpack(load_pack<V>(dy + row * channels + c), gradient);
  };
  for (int c = lane * V; c < channels; c += 32 * V) {
    load(c);
#pragma unroll
    for (int i = 0; i < V; ++i) sum = fmaf(value[i], gradient[i], sum);
  }
  sum = over_warp(sum, [](float a, float b) { return a + b; });
  for (int c = lane * V; c < channels; c += 32 * V) {
    load(c);
#pragma unroll
    for (int i = 0; i < V; ++i) value[i] *= gradient[i] - sum;
    store_pack(dx + row * channels + c, pack_of<T>(value));
  }
}

template <bool back>
Kernel make(const char* operation, KernelRequest& request) {
  require_counts(operation, request, back ? 2 : 1, 1);
  TensorDesc& first = request.inputs[0];
  require_activation_layout(operation, first);
  for (TensorDesc& input : request.inputs) {
    match_layout(operation, input, first);
    require_shape(operation, "an input", input, request.outputs[0].shape);
  }
  match_layout(operation, request.outputs[0], first);
  const DType type = common_dtype(operation, {&first, &request.inputs.back(), &request.outputs[0]});
  const ImageExtents e = image_extents(first.shape);
  const std::int64_t rows = e.n * e.pixels();
  const auto body = [=](const BoundOperands& b, Stream stream) {
    with_packing(type, {e.c}, [&](auto packing) {
      using P = decltype(packing);
      using T = typename P::Type;
      const auto channels = static_cast<int>(e.c);
      if constexpr (back)
        launch(backward<T, P::kWidth>, grid_for(rows * 32), kThreads, stream, b.members, b.in<T>(0),
               b.in<T>(1), b.out<T>(0), rows, channels);
      else
        launch(forward<T, P::kWidth>, grid_for(rows * 32), kThreads, stream, b.members, b.in<T>(0),
               b.out<T>(0), rows, channels);
    });
  };
  std::vector<std::pair<int, int>> in_place{{0, 0}};
  if (back) in_place.emplace_back(1, 0);
  return device_kernel(body, std::move(in_place));
}

}  // namespace

Kernel softmax_forward(const SoftmaxProblem&, KernelRequest& request) {
  return make<false>("softmax_forward", request);
}
Kernel softmax_backward(const SoftmaxProblem&, KernelRequest& request) {
  return make<true>("softmax_backward", request);
}

}  // namespace convoy::kernels::cuda
