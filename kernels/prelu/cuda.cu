// Applies PReLU on the device.
#include "kernels/device/cuda_column_sums.cuh"
#include "kernels/device/divider.h"
#include "kernels/prelu/prelu.h"

namespace convoy::kernels::cuda {
namespace {

template <typename T, int V>
__global__ void forward(const T* x, const float* slope, int slopes, T* y, Divider packs, std::int64_t items,
                        std::ptrdiff_t member_stride) {
  move_to_member(member_stride, x, slope, y);
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < items; i += stride) {
    const std::uint32_t row = packs(static_cast<std::uint32_t>(i));
    const int channel = static_cast<int>(static_cast<std::uint32_t>(i) - row * packs.divisor) * V;
    float value[V];
    unpack(load_pack<V>(x + i * V), value);
#pragma unroll
    for (int k = 0; k < V; ++k)
      value[k] = value[k] > 0 ? value[k] : slope[slopes == 1 ? 0 : channel + k] * value[k];
    store_pack(y + i * V, pack_of<T>(value));
  }
}

// A Source for column_sums() (cuda_column_sums.cuh). While column_sums() reads x and dy, this
// writes dx and adds up the gradients of the slopes.
template <typename T, int V>
struct Gradient {
  static constexpr int kWidth = V, kSums = 1;
  const T *x, *dy;
  const float* slope;
  int slopes;
  T* dx;

  template <typename Visit>
  __device__ void each_pointer(Visit visit) {
    visit(x, dy, slope, dx);
  }
  struct Loaded {
    Pack<T, V> x, dy;
  };
  __device__ __forceinline__ Loaded load(std::int64_t at) const {
    return {load_pack<V>(x + at), load_pack<V>(dy + at)};
  }
  __device__ __forceinline__ void visit(const Loaded& loaded, std::int64_t, std::int64_t, std::int64_t at,
                                        int channel, float (&sums)[1][V]) const {
    float value[V], gradient[V];
    unpack(loaded.x, value);
    unpack(loaded.dy, gradient);
#pragma unroll
    for (int k = 0; k < V; ++k) {
      const bool positive = value[k] > 0;
      sums[0][k] += positive ? 0.0f : value[k] * gradient[k];
      gradient[k] *= positive ? 1.0f : slope[slopes == 1 ? 0 : channel + k];
    }
    store_pack(dx + at, pack_of<T>(gradient));
  }
};

}  // namespace

Kernel prelu_forward(const PreluProblem&, KernelRequest& request) {
  const char* operation = "prelu_forward";
  require_counts(operation, request, 2, 1);
  TensorDesc &x = request.inputs[0], &y = request.outputs[0];
  require_activation_layout(operation, x);
  match_layout(operation, y, x);
  require_shape(operation, "y", y, x.shape);
  require_slope(operation, request.inputs[1], x.shape);
  const DType type = common_dtype(operation, {&x, &y});
  const ImageExtents e = image_extents(x.shape);
  require_below_2g(operation, x.shape.elements());
  const auto body = [=, slopes = static_cast<int>(request.inputs[1].shape[0])](const BoundOperands& b,
                                                                               Stream stream) {
    with_packing(type, {e.c}, [&](auto packing) {
      using P = decltype(packing);
      using T = typename P::Type;
      const std::int64_t items = e.n * e.c * e.pixels() / P::kWidth;
      launch(forward<T, P::kWidth>, grid_for(items), kThreads, stream, b.members, b.in<T>(0), b.in(1), slopes,
             b.out<T>(0), Divider(e.c / P::kWidth), items);
    });
  };
  return device_kernel(body, {{0, 0}});
}

Kernel prelu_backward(const PreluProblem&, KernelRequest& request) {
  const char* operation = "prelu_backward";
  require_counts(operation, request, 3, 2);
  TensorDesc &x = request.inputs[0], &dy = request.inputs[2], &dx = request.outputs[0];
  require_activation_layout(operation, x);
  for (TensorDesc* desc : {&dy, &dx}) {
    match_layout(operation, *desc, x);
    require_shape(operation, "a gradient", *desc, x.shape);
  }
  for (TensorDesc* slope : {&request.inputs[1], &request.outputs[1]})
    require_slope(operation, *slope, x.shape);
  require_shape(operation, "dslope", request.outputs[1], request.inputs[1].shape);
  const DType type = common_dtype(operation, {&x, &dy, &dx});
  const ImageExtents e = image_extents(x.shape);
  const int slopes = static_cast<int>(request.inputs[1].shape[0]);
  const SumGrid grid = sum_grid(1, e.n * e.pixels(), e.c, type);
  const auto body = [=](const BoundOperands& b, Stream stream) {
    with_packing(type, {e.c}, [&](auto packing) {
      using P = decltype(packing);
      using T = typename P::Type;
      using Source = Gradient<T, P::kWidth>;
      const Source source{b.in<T>(0), b.in<T>(2), b.in(1), slopes, b.out<T>(0)};
      auto* const partials = b.scratch<float>();
      const SumOutputs<float, 1> out{{b.out(1)}};
      if (slopes > 1) return sum_columns(source, grid, partials, out, stream, b.members);
      // There is one slope for all channels, so add up each channel first, and then the channels.
      float* const channels = partials + grid.partials(1);
      sum_columns(source, grid, partials, SumOutputs<float, 1>{{channels}}, stream, b.members);
      finish_columns(channels, 1, grid.channels, 1, 1, out, stream, b.members);
    });
  };
  return device_kernel(body, {{0, 0}, {2, 0}},
                       grid.partial_bytes(1) + static_cast<std::size_t>(e.c) * sizeof(float));
}

}  // namespace convoy::kernels::cuda
