// Pools images on the device, with windows of any size. A thread computes one pack of channels of
// an output pixel (forward) or of an input pixel (backward). The output aux says where each maximum
// is in its window, counted row by row. It is u8 in the shape of y, or i32 if windows have more
// than 256 positions.
#include "kernels/pool/cuda.cuh"

namespace convoy::kernels::cuda {
namespace {

struct Window {
  int first_row, first_column;  // the window's corner, which may be in the padding
  // The rows [top, bottom) and the columns [left, right) of the image that the window covers.
  int top, bottom, left, right;
  float divisor;  // the number by which the sum of an average is divided
};

__device__ __forceinline__ Window window_at(const PoolGeometry& g, int oh, int ow) {
  Window window;
  window.first_row = oh * g.stride[0] - g.padding[0];
  window.first_column = ow * g.stride[1] - g.padding[1];
  const int bottom = min(window.first_row + g.kernel[0], g.h + g.padding[0]);
  const int right = min(window.first_column + g.kernel[1], g.w + g.padding[1]);
  window.top = max(window.first_row, 0);
  window.left = max(window.first_column, 0);
  window.bottom = min(bottom, g.h);
  window.right = min(right, g.w);
  window.divisor =
      g.count_include_pad
          ? static_cast<float>(bottom - window.first_row) * static_cast<float>(right - window.first_column)
          : static_cast<float>(window.bottom - window.top) * static_cast<float>(window.right - window.left);
  return window;
}

// The outputs from `first` to `last`, both included, whose windows cover an input position, along
// one axis.
struct Range {
  int first, last;
};
__device__ __forceinline__ Range covering(const PoolGeometry& g, int axis, int position, int outputs) {
  const int reach = position + g.padding[axis] - g.kernel[axis];
  const auto over_stride = [&](int value) {
    return static_cast<int>(g.strides[axis](static_cast<std::uint32_t>(value)));
  };
  return {reach < 0 ? 0 : over_stride(reach) + 1, min(over_stride(position + g.padding[axis]), outputs - 1)};
}

template <typename T, int V, typename Aux>
__global__ void max_forward(const T* x, T* y, Aux* aux, const __grid_constant__ PoolGeometry g,
                            std::ptrdiff_t member_stride) {
  move_to_member(member_stride, x, y, aux);
  const std::int64_t turn = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t item = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; item < g.items;
       item += turn) {
    const Position at = position_of<V>(g, item);
    const Window window = window_at(g, at.row, at.column);
    float best[V];
    Pack<Aux, V> place;
    const int start = (window.top - window.first_row) * g.kernel[1] + window.left - window.first_column;
#pragma unroll
    for (int i = 0; i < V; ++i) {
      best[i] = -INFINITY;
      place.value[i] = static_cast<Aux>(start);
    }
    for (int h = window.top; h < window.bottom; ++h) {
      const T* line = x + ((at.sample * g.h + h) * g.w) * g.channels + at.channel;
      const int offset = (h - window.first_row) * g.kernel[1] - window.first_column;
      for (int w = window.left; w < window.right; w += 4) {
        Pack<T, V> packs[4];
#pragma unroll
        for (int k = 0; k < 4; ++k)
          if (w + k < window.right) packs[k] = load_pack<V>(line + std::int64_t{w + k} * g.channels);
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          if (w + k >= window.right) break;
          float value[V];
          unpack(packs[k], value);
#pragma unroll
          for (int i = 0; i < V; ++i)
            if (value[i] > best[i] || value[i] != value[i]) {
              best[i] = value[i];
              place.value[i] = static_cast<Aux>(offset + w + k);
            }
        }
      }
    }
#pragma unroll
    for (int i = 0; i < V; ++i)
      if (g.relu) best[i] = rectified(best[i]);
    store_pack(y + item * V, pack_of<T>(best));
    store_pack(aux + item * V, place);
  }
}

template <typename T, int V, typename Aux>
__global__ void max_backward(const Aux* aux, const T* dy, T* dx, const __grid_constant__ PoolGeometry g,
                             std::ptrdiff_t member_stride) {
  move_to_member(member_stride, aux, dy, dx);
  const std::int64_t turn = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t item = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; item < g.items;
       item += turn) {
    const Position at = position_of<V>(g, item);
    const Range rows = covering(g, 0, at.row, g.oh);
    const Range columns = covering(g, 1, at.column, g.ow);
    float sum[V] = {};
    for (int oh = rows.first; oh <= rows.last; ++oh)
      for (int ow = columns.first; ow <= columns.last; ++ow) {
        const std::int64_t from = ((at.sample * g.oh + oh) * g.ow + ow) * g.channels + at.channel;
        const int place = (at.row - oh * g.stride[0] + g.padding[0]) * g.kernel[1] + at.column -
                          ow * g.stride[1] + g.padding[1];
        const Pack<Aux, V> chosen = load_pack<V>(aux + from);
        float value[V];
        unpack(load_pack<V>(dy + from), value);
#pragma unroll
        for (int i = 0; i < V; ++i) sum[i] += static_cast<int>(chosen.value[i]) == place ? value[i] : 0.0f;
      }
    store_pack(dx + item * V, pack_of<T>(sum));
  }
}

template <typename T, int V>
__global__ void average_forward(const T* x, T* y, const __grid_constant__ PoolGeometry g,
                                std::ptrdiff_t member_stride) {
  move_to_member(member_stride, x, y);
  const std::int64_t turn = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t item = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; item < g.items;
       item += turn) {
    const Position at = position_of<V>(g, item);
    const Window window = window_at(g, at.row, at.column);
    int lines = window.bottom - window.top, width = window.right - window.left;
    // If a window is as wide as the image, its lines follow each other in memory and are read as
    // one line.
    if (width == g.w) {
      width *= lines;
      lines = 1;
    }
    float sum[V] = {};
    for (int line = 0; line < lines; ++line) {
      const T* from =
          x + ((at.sample * g.h + window.top + line) * g.w + window.left) * g.channels + at.channel;
      for (int w = 0; w < width; w += 8) {
        Pack<T, V> packs[8];
#pragma unroll
        for (int k = 0; k < 8; ++k)
          packs[k] =
              w + k < width ? load_pack<V>(from + std::int64_t{w + k} * g.channels) : zero_pack<T, V>();
#pragma unroll
        for (int k = 0; k < 8; ++k) {
          float value[V];
          unpack(packs[k], value);
#pragma unroll
          for (int i = 0; i < V; ++i) sum[i] += value[i];
        }
      }
    }
#pragma unroll
    for (int i = 0; i < V; ++i) sum[i] /= window.divisor;
    store_pack(y + item * V, pack_of<T>(sum));
  }
}

template <typename T, int V>
__global__ void average_backward(const T* dy, T* dx, const __grid_constant__ PoolGeometry g,
                                 std::ptrdiff_t member_stride) {
  move_to_member(member_stride, dy, dx);
  const std::int64_t turn = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t item = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; item < g.items;
       item += turn) {
    const Position at = position_of<V>(g, item);
    const Range rows = covering(g, 0, at.row, g.oh);
    const Range columns = covering(g, 1, at.column, g.ow);
    float sum[V] = {};
    for (int oh = rows.first; oh <= rows.last; ++oh)
      for (int ow = columns.first; ow <= columns.last; ++ow) {
        const float scale = 1.0f / window_at(g, oh, ow).divisor;
        float value[V];
        unpack(load_pack<V>(dy + ((at.sample * g.oh + oh) * g.ow + ow) * g.channels + at.channel), value);
#pragma unroll
        for (int i = 0; i < V; ++i) sum[i] = fmaf(value[i], scale, sum[i]);
      }
    store_pack(dx + item * V, pack_of<T>(sum));
  }
}

DType aux_type(const PoolProblem& problem) {
  return problem.kernel[0] * problem.kernel[1] <= 256 ? DType::u8 : DType::i32;
}

// Calls visit(packing, zero). `packing` says how many channels a thread reads at a time. The type
// of `zero` is the element type of aux (pool.h). If that is i32, channels are read one by one.
template <typename Visit>
void with_aux(DType aux, DType type, std::int64_t channels, Visit visit) {
  if (aux == DType::u8)
    return with_packing(type, {channels}, [&](auto packing) { visit(packing, std::uint8_t{}); });
  type == DType::bf16 ? visit(Packing<bf16, 1>{}, std::int32_t{})
                      : visit(Packing<float, 1>{}, std::int32_t{});
}

// Throws std::invalid_argument unless packs and pixels, padding included, can be counted with 31
// bits.
void require_countable(std::string_view operation, const PoolProblem& problem, DType type,
                       const Shape& shape) {
  with_aux(problem.kind == PoolKind::max ? aux_type(problem) : DType::u8, type, shape[1],
           [&](auto packing, auto) {
             require_below_2g(operation, shape[0] * (shape[2] + problem.padding[0]) *
                                             (shape[3] + problem.padding[1]) *
                                             (shape[1] / decltype(packing)::kWidth));
           });
}

// Returns whether the pool is an average over the whole image.
bool is_global(const PoolProblem& problem, const Shape& x) {
  return problem.kind == PoolKind::average && problem.kernel[0] == x[2] && problem.kernel[1] == x[3] &&
         problem.padding[0] == 0 && problem.padding[1] == 0;
}

}  // namespace

PoolGeometry geometry_of(const PoolProblem& problem, const Shape& x, const Shape& y, std::int64_t rows,
                         std::int64_t columns, int width) {
  PoolGeometry g{};
  g.h = static_cast<int>(x[2]);
  g.w = static_cast<int>(x[3]);
  g.oh = static_cast<int>(y[2]);
  g.ow = static_cast<int>(y[3]);
  for (int axis = 0; axis < 2; ++axis) {
    g.kernel[axis] = problem.kernel[axis];
    g.stride[axis] = problem.stride[axis];
    g.padding[axis] = problem.padding[axis];
    g.strides[axis] = Divider(problem.stride[axis]);
  }
  g.count_include_pad = problem.count_include_pad;
  g.relu = problem.relu;
  g.channels = static_cast<int>(x[1]);
  g.packs = Divider(x[1] / width);
  g.columns = Divider(columns);
  g.rows = Divider(rows);
  g.items = x[0] * rows * columns * (x[1] / width);
  return g;
}

Kernel pool_forward(const PoolProblem& problem, KernelRequest& request) {
  const char* operation = "pool_forward";
  const bool max = problem.kind == PoolKind::max;
  require_counts(operation, request, 1, max ? 2 : 1);
  const Shape x = request.inputs[0].shape, y = request.outputs[0].shape;
  require_shape(operation, "y", request.outputs[0], pool_output_shape(problem, x));
  if (max) request.outputs[1] = {aux_type(problem), y, Layout::channels_last, nullptr};
  require_activation_layouts(operation, request);
  const DType type = common_dtype(operation, {&request.inputs[0], &request.outputs[0]});
  require_countable(operation, problem, type, y);
  return device_kernel([=](const BoundOperands& b, Stream stream) {
    if (max && small_max_forward(problem, type, x, y, b, stream)) return;
    if (is_global(problem, x)) return global_average_forward(type, x, b, stream);
    if (max)
      return with_aux(aux_type(problem), type, x[1], [&](auto packing, auto aux) {
        using P = decltype(packing);
        using T = typename P::Type;
        const PoolGeometry g = geometry_of(problem, x, y, y[2], y[3], P::kWidth);
        launch(max_forward<T, P::kWidth, decltype(aux)>, grid_for(g.items), kThreads, stream, b.members,
               b.in<T>(0), b.out<T>(0), b.out<decltype(aux)>(1), g);
      });
    with_packing(type, {x[1]}, [&](auto packing) {
      using P = decltype(packing);
      using T = typename P::Type;
      const PoolGeometry g = geometry_of(problem, x, y, y[2], y[3], P::kWidth);
      launch(average_forward<T, P::kWidth>, grid_for(g.items), kThreads, stream, b.members, b.in<T>(0),
             b.out<T>(0), g);
    });
  });
}

Kernel pool_backward(const PoolProblem& problem, KernelRequest& request) {
  const char* operation = "pool_backward";
  const bool max = problem.kind == PoolKind::max;
  const int dy_at = max ? 1 : 0;
  require_counts(operation, request, 1 + dy_at, 1);
  const Shape x = request.outputs[0].shape, y = request.inputs[dy_at].shape;
  require_shape(operation, "dy", request.inputs[dy_at], pool_output_shape(problem, x));
  if (max) require_dtype(operation, "aux", request.inputs[0], aux_type(problem));
  require_activation_layouts(operation, request);
  const DType type = common_dtype(operation, {&request.inputs[dy_at], &request.outputs[0]});
  require_countable(operation, problem, type, x);
  return device_kernel([=](const BoundOperands& b, Stream stream) {
    if (max && small_max_backward(problem, type, x, y, b, stream)) return;
    if (is_global(problem, x)) return global_average_backward(type, x, b, stream);
    if (max)
      return with_aux(aux_type(problem), type, x[1], [&](auto packing, auto aux) {
        using P = decltype(packing);
        using T = typename P::Type;
        const PoolGeometry g = geometry_of(problem, x, y, x[2], x[3], P::kWidth);
        launch(max_backward<T, P::kWidth, decltype(aux)>, grid_for(g.items), kThreads, stream, b.members,
               b.in<decltype(aux)>(0), b.in<T>(1), b.out<T>(0), g);
      });
    with_packing(type, {x[1]}, [&](auto packing) {
      using P = decltype(packing);
      using T = typename P::Type;
      const PoolGeometry g = geometry_of(problem, x, y, x[2], x[3], P::kWidth);
      launch(average_backward<T, P::kWidth>, grid_for(g.items), kThreads, stream, b.members, b.in<T>(0),
             b.out<T>(0), g);
    });
  });
}

}  // namespace convoy::kernels::cuda
