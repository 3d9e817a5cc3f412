// Multiplies an image by a tensor, or adds a tensor to it, and computes the gradients. The tensor
// is repeated over samples and pixels, over pixels only, or not at all (Repeat). Works on the
// device.
#include "kernels/broadcast/broadcast.h"
#include "kernels/device/cuda_column_sums.cuh"
#include "kernels/device/divider.h"

namespace convoy::kernels::cuda {
namespace {

// Loads the factors of V channels. All rows of a segment have the same factors. A segment is one
// sample, or the whole batch if the factors have one value per channel.
template <typename F, int V>
__device__ __forceinline__ void load_factors(const F* factor, std::int64_t segment, int channels, int channel,
                                             float (&to)[V]) {
  unpack(load_pack<V>(factor + segment * channels + channel), to);
}

// Computes y = x factor or, if `add`, y = x + factor. Each run of `segment_rows` rows has the same
// factors.
template <typename T, typename F, int V, bool add>
__global__ void repeat_factor(const T* x, const F* factor, T* y, Divider packs, Divider segment_rows,
                              std::int64_t items, std::ptrdiff_t member_stride) {
  move_to_member(member_stride, x, factor, y);
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < items; i += stride) {
    const std::uint32_t row = packs(static_cast<std::uint32_t>(i));
    const int pack = static_cast<int>(static_cast<std::uint32_t>(i) - row * packs.divisor);
    float value[V], by[V];
    unpack(load_pack<V>(x + i * V), value);
    load_factors(factor, segment_rows(row), static_cast<int>(packs.divisor) * V, pack * V, by);
#pragma unroll
    for (int k = 0; k < V; ++k) value[k] = add ? value[k] + by[k] : value[k] * by[k];
    store_pack(y + i * V, pack_of<T>(value));
  }
}

template <typename T, int V>
__global__ void multiply(const T* a, const T* b, T* y, std::int64_t packs, std::ptrdiff_t member_stride) {
  move_to_member(member_stride, a, b, y);
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < packs; i += stride) {
    float value[V], by[V];
    unpack(load_pack<V>(a + i * V), value);
    unpack(load_pack<V>(b + i * V), by);
#pragma unroll
    for (int k = 0; k < V; ++k) value[k] *= by[k];
    store_pack(y + i * V, pack_of<T>(value));
  }
}

template <typename T, int V>
__global__ void multiply_gradients(const T* x, const T* factor, const T* dy, T* dx, T* dfactor,
                                   std::int64_t packs, std::ptrdiff_t member_stride) {
  move_to_member(member_stride, x, factor, dy, dx, dfactor);
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < packs; i += stride) {
    float value[V], by[V], gradient[V];
    unpack(load_pack<V>(x + i * V), value);
    unpack(load_pack<V>(factor + i * V), by);
    unpack(load_pack<V>(dy + i * V), gradient);
#pragma unroll
    for (int k = 0; k < V; ++k) value[k] *= gradient[k], by[k] *= gradient[k];
    store_pack(dx + i * V, pack_of<T>(by));
    store_pack(dfactor + i * V, pack_of<T>(value));
  }
}

// Writes dx and adds up the gradients of the factors, as a Source of column_sums()
// (cuda_column_sums.cuh).
template <typename T, typename F, int V>
struct FactorGradient {
  static constexpr int kWidth = V, kSums = 1;
  const T *x, *dy;
  const F* factor;
  T* dx;
  int channels;

  template <typename Visit>
  __device__ void each_pointer(Visit visit) {
    visit(x, dy, factor, dx);
  }
  struct Loaded {
    Pack<T, V> x, dy;
  };
  __device__ __forceinline__ Loaded load(std::int64_t at) const {
    return {load_pack<V>(x + at), load_pack<V>(dy + at)};
  }
  __device__ __forceinline__ void visit(const Loaded& loaded, std::int64_t segment, std::int64_t,
                                        std::int64_t at, int channel, float (&sums)[1][V]) const {
    float value[V], gradient[V], by[V];
    unpack(loaded.x, value);
    unpack(loaded.dy, gradient);
    load_factors(factor, segment, channels, channel, by);
#pragma unroll
    for (int k = 0; k < V; ++k) {
      sums[0][k] = fmaf(value[k], gradient[k], sums[0][k]);
      gradient[k] *= by[k];
    }
    store_pack(dx + at, pack_of<T>(gradient));
  }
};

// Adds up dy, as a Source of column_sums() (cuda_column_sums.cuh).
template <typename T, int V>
struct TermGradient {
  static constexpr int kWidth = V, kSums = 1;
  const T* dy;

  template <typename Visit>
  __device__ void each_pointer(Visit visit) {
    visit(dy);
  }
  using Loaded = Pack<T, V>;
  __device__ __forceinline__ Loaded load(std::int64_t at) const { return load_pack<V>(dy + at); }
  __device__ __forceinline__ void visit(const Loaded& loaded, std::int64_t, std::int64_t, std::int64_t, int,
                                        float (&sums)[1][V]) const {
    float gradient[V];
    unpack(loaded, gradient);
#pragma unroll
    for (int k = 0; k < V; ++k) sums[0][k] += gradient[k];
  }
};

// Calls visit(packing, zero). `packing` is the Packing (cuda_launch.cuh) of the images, and the
// type of `zero` is that of the factors.
template <typename Visit>
void with_types(DType type, std::int64_t channels, Repeat repeat, Visit visit) {
  with_packing(type, {channels}, [&](auto packing) {
    if (repeat == Repeat::over_all)
      visit(packing, float{});
    else
      visit(packing, typename decltype(packing)::Type{});
  });
}

SumGrid grid_of(Repeat repeat, const ImageExtents& e, DType type) {
  return repeat == Repeat::over_all ? sum_grid(1, e.n * e.pixels(), e.c, type)
                                    : sum_grid(e.n, e.pixels(), e.c, type);
}

template <bool add>
Kernel forward(const char* operation, KernelRequest& request) {
  require_counts(operation, request, 2, 1);
  TensorDesc &x = request.inputs[0], &factor = request.inputs[1], &y = request.outputs[0];
  require_activation_layout(operation, x);
  match_layout(operation, y, x);
  require_shape(operation, "y", y, x.shape);
  const Repeat repeat = (add ? repeated_term : repeat_of)(operation, factor.shape, x.shape);
  require_factor(operation, repeat, factor, x);
  const DType type = common_dtype(operation, {&x, &y});
  const ImageExtents e = image_extents(x.shape);
  const std::int64_t elements = x.shape.elements();
  if (repeat != Repeat::none) require_below_2g(operation, elements);
  const auto body = [=](const BoundOperands& b, Stream stream) {
    if (repeat == Repeat::none)
      return with_packing(type, {elements}, [&](auto packing) {
        using P = decltype(packing);
        using T = typename P::Type;
        launch(multiply<T, P::kWidth>, grid_for(elements / P::kWidth), kThreads, stream, b.members,
               b.in<T>(0), b.in<T>(1), b.out<T>(0), elements / P::kWidth);
      });
    with_types(type, e.c, repeat, [&](auto packing, auto zero) {
      using P = decltype(packing);
      using T = typename P::Type;
      using F = decltype(zero);
      const std::int64_t items = elements / P::kWidth;
      launch(repeat_factor<T, F, P::kWidth, add>, grid_for(items), kThreads, stream, b.members, b.in<T>(0),
             b.in<F>(1), b.out<T>(0), Divider(e.c / P::kWidth),
             Divider(repeat == Repeat::over_all ? e.n * e.pixels() : e.pixels()), items);
    });
  };
  return device_kernel(body, {{0, 0}});
}

}  // namespace

Kernel multiply_forward(const BroadcastProblem&, KernelRequest& request) {
  return forward<false>("multiply_forward", request);
}
Kernel broadcast_add_forward(const BroadcastProblem&, KernelRequest& request) {
  return forward<true>("broadcast_add_forward", request);
}

Kernel multiply_backward(const BroadcastProblem&, KernelRequest& request) {
  const char* operation = "multiply_backward";
  require_counts(operation, request, 3, 2);
  TensorDesc &x = request.inputs[0], &factor = request.inputs[1], &dy = request.inputs[2];
  TensorDesc &dx = request.outputs[0], &dfactor = request.outputs[1];
  require_activation_layout(operation, x);
  for (TensorDesc* desc : {&dy, &dx}) {
    match_layout(operation, *desc, x);
    require_shape(operation, "a gradient", *desc, x.shape);
  }
  const Repeat repeat = repeat_of(operation, factor.shape, x.shape);
  require_shape(operation, "dfactor", dfactor, factor.shape);
  for (TensorDesc* desc : {&factor, &dfactor}) require_factor(operation, repeat, *desc, x);
  const DType type = common_dtype(operation, {&x, &dy, &dx});
  const ImageExtents e = image_extents(x.shape);
  const std::int64_t elements = x.shape.elements();
  if (repeat == Repeat::none)
    return device_kernel(
        [=](const BoundOperands& b, Stream stream) {
          with_packing(type, {elements}, [&](auto packing) {
            using P = decltype(packing);
            using T = typename P::Type;
            launch(multiply_gradients<T, P::kWidth>, grid_for(elements / P::kWidth), kThreads, stream,
                   b.members, b.in<T>(0), b.in<T>(1), b.in<T>(2), b.out<T>(0), b.out<T>(1),
                   elements / P::kWidth);
          });
        },
        {{0, 0}, {2, 0}});
  const SumGrid grid = grid_of(repeat, e, type);
  const auto body = [=](const BoundOperands& b, Stream stream) {
    with_types(type, e.c, repeat, [&](auto packing, auto zero) {
      using P = decltype(packing);
      using T = typename P::Type;
      using F = decltype(zero);
      const FactorGradient<T, F, P::kWidth> source{b.in<T>(0), b.in<T>(2), b.in<F>(1), b.out<T>(0),
                                                   grid.channels};
      sum_columns(source, grid, b.scratch<float>(), SumOutputs<F, 1>{{b.out<F>(1)}}, stream, b.members);
    });
  };
  return device_kernel(body, {{0, 0}, {2, 0}}, grid.partial_bytes(1));
}

Kernel broadcast_add_backward(const BroadcastProblem&, KernelRequest& request) {
  const char* operation = "broadcast_add_backward";
  require_counts(operation, request, 1, 1);
  TensorDesc &dy = request.inputs[0], &dterm = request.outputs[0];
  require_activation_layout(operation, dy);
  const Repeat repeat = repeated_term(operation, dterm.shape, dy.shape);
  require_factor(operation, repeat, dterm, dy);
  const DType type = common_dtype(operation, {&dy});
  const ImageExtents e = image_extents(dy.shape);
  const SumGrid grid = grid_of(repeat, e, type);
  const auto body = [=](const BoundOperands& b, Stream stream) {
    with_types(type, e.c, repeat, [&](auto packing, auto zero) {
      using P = decltype(packing);
      using T = typename P::Type;
      using F = decltype(zero);
      sum_columns(TermGradient<T, P::kWidth>{b.in<T>(0)}, grid, b.scratch<float>(),
                  SumOutputs<F, 1>{{b.out<F>(0)}}, stream, b.members);
    });
  };
  return device_kernel(body, {}, grid.partial_bytes(1));
}

}  // namespace convoy::kernels::cuda
