// Max pooling over the common windows, 2x2 and 3x3, with unrolled loops. Elements in bf16 are
// compared two at a time. In backward, a thread computes a block of stride x stride pixels, all of
// which are covered by the same windows.
#include "kernels/pool/cuda.cuh"

namespace convoy::kernels::cuda {
namespace {

constexpr int kV = kPackWidth<bf16>;

struct Words {
  __nv_bfloat162 pair[kV / 2];
};

// Computes y and aux for any stride and padding. K is the height and width of the window.
template <int K>
__global__ void max_forward(const bf16* x, bf16* y, std::uint8_t* aux, const __grid_constant__ PoolGeometry g,
                            std::ptrdiff_t member_stride) {
  move_to_member(member_stride, x, y, aux);
  const std::int64_t turn = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t item = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; item < g.items;
       item += turn) {
    const Position at = position_of<kV>(g, item);
    const int h = at.row * g.stride[0] - g.padding[0], w = at.column * g.stride[1] - g.padding[1];
    const bf16* corner = x + ((at.sample * g.h + h) * g.w + w) * g.channels + at.channel;
    const auto inside = [&](int r, int s) {
      return static_cast<unsigned>(h + r) < static_cast<unsigned>(g.h) &&
             static_cast<unsigned>(w + s) < static_cast<unsigned>(g.w);
    };
    Words window[K * K], best;
#pragma unroll
    for (int i = 0; i < K * K; ++i) {
      const int r = i / K, s = i % K;
      const __nv_bfloat162 lowest = __float2bfloat162_rn(-INFINITY);
      if (inside(r, s))
        window[i] = *reinterpret_cast<const Words*>(
            __builtin_assume_aligned(corner + (std::int64_t{r} * g.w + s) * g.channels, 16));
      else
        window[i] = {{lowest, lowest, lowest, lowest}};
    }
    best = window[0];
#pragma unroll
    for (int i = 1; i < K * K; ++i)
#pragma unroll
      for (int k = 0; k < kV / 2; ++k) best.pair[k] = __hmax2_nan(best.pair[k], window[i].pair[k]);
    // Positions are tried from the last to the first, so that the first of equal maxima remains.
    std::uint32_t places[kV / 2] = {};
#pragma unroll
    for (int i = K * K - 1; i >= 0; --i) {
      if (!inside(i / K, i % K)) continue;
#pragma unroll
      for (int k = 0; k < kV / 2; ++k) {
        const std::uint32_t equal = __hequ2_mask(window[i].pair[k], best.pair[k]);
        places[k] = (equal & (0x10001u * i)) | (~equal & places[k]);
      }
    }
    if (g.relu)
#pragma unroll
      for (int k = 0; k < kV / 2; ++k) best.pair[k] = __hmax2_nan(best.pair[k], __float2bfloat162_rn(0));
    *reinterpret_cast<uint4*>(y + item * kV) = *reinterpret_cast<const uint4*>(&best);
    *reinterpret_cast<uint2*>(aux + item * kV) =
        make_uint2(__byte_perm(places[0], places[1], 0x6420), __byte_perm(places[2], places[3], 0x6420));
  }
}

// Computes dx. A thread computes S x S pixels, which are covered by the same windows: at most (K -
// 1) / S + 1 windows along each axis.
template <typename T, int V, int K, int S>
__global__ void max_backward(const std::uint8_t* aux, const T* dy, T* dx,
                             const __grid_constant__ PoolGeometry g, std::ptrdiff_t member_stride) {
  move_to_member(member_stride, aux, dy, dx);
  constexpr int kBack = (K - 1) / S;
  const std::int64_t turn = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t item = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; item < g.items;
       item += turn) {
    const Position at = position_of<V>(g, item);
    float sum[S * S][V] = {};
    // With stride 1, up to three windows along each axis cover a pixel. Unrolling this loop would
    // then need too many registers.
#pragma unroll(S == 1 ? 1 : kBack + 1)
    for (int up = 0; up <= kBack; ++up) {
      const int oh = at.row - up;
      if (oh < 0 || oh >= g.oh) continue;
      Pack<std::uint8_t, V> chosen[kBack + 1];
      Pack<T, V> gradient[kBack + 1];
#pragma unroll
      for (int left = 0; left <= kBack; ++left) {
        const int ow = at.column - left;
        const std::int64_t from = ((at.sample * g.oh + oh) * g.ow + ow) * g.channels + at.channel;
        if (ow >= 0 && ow < g.ow) {
          chosen[left] = load_pack<V>(aux + from);
          gradient[left] = load_pack<V>(dy + from);
        } else {
#pragma unroll
          for (int v = 0; v < V; ++v) chosen[left].value[v] = 255;
          gradient[left] = zero_pack<T, V>();
        }
      }
#pragma unroll
      for (int left = 0; left <= kBack; ++left) {
        float value[V];
        unpack(gradient[left], value);
#pragma unroll
        for (int pixel = 0; pixel < S * S; ++pixel) {
          const int r = up * S + pixel / S, s = left * S + pixel % S;
          if (r >= K || s >= K) continue;
#pragma unroll
          for (int v = 0; v < V; ++v)
            if (chosen[left].value[v] == r * K + s) sum[pixel][v] += value[v];
        }
      }
    }
#pragma unroll
    for (int pixel = 0; pixel < S * S; ++pixel) {
      const int h = at.row * S - g.padding[0] + pixel / S, w = at.column * S - g.padding[1] + pixel % S;
      if (h >= 0 && h < g.h && w >= 0 && w < g.w)
        store_pack(dx + ((at.sample * g.h + h) * g.w + w) * g.channels + at.channel, pack_of<T>(sum[pixel]));
    }
  }
}

template <typename T>
auto* backward_kernel(int kernel, int stride) {
  constexpr int kWidth = kPackWidth<T>;
  if (kernel == 2) return stride == 2 ? max_backward<T, kWidth, 2, 2> : nullptr;
  return stride == 2 ? max_backward<T, kWidth, 3, 2> : max_backward<T, kWidth, 3, 1>;
}

bool is_small(const PoolProblem& problem, const Shape& x, int width) {
  const int kernel = problem.kernel[0];
  return problem.kernel[1] == kernel && (kernel == 2 || kernel == 3) && x[1] % width == 0;
}

}  // namespace

bool small_max_forward(const PoolProblem& problem, DType type, const Shape& x, const Shape& y,
                       const BoundOperands& b, Stream stream) {
  if (type != DType::bf16 || !is_small(problem, x, kV)) return false;
  const PoolGeometry g = geometry_of(problem, x, y, y[2], y[3], kV);
  launch(problem.kernel[0] == 2 ? max_forward<2> : max_forward<3>, grid_for(g.items), kThreads, stream,
         b.members, b.in<bf16>(0), b.out<bf16>(0), b.out<std::uint8_t>(1), g);
  return true;
}

bool small_max_backward(const PoolProblem& problem, DType type, const Shape& x, const Shape& y,
                        const BoundOperands& b, Stream stream) {
  const int width = type == DType::bf16 ? kPackWidth<bf16> : kPackWidth<float>;
  const int stride = problem.stride[0];
  if (!is_small(problem, x, width) || problem.stride[1] != stride || stride > 2 ||
      (problem.kernel[0] == 2 && stride == 1))
    return false;
  const auto blocks = [&](int axis) { return (x[axis + 2] - 1 + problem.padding[axis]) / stride + 1; };
  const PoolGeometry g = geometry_of(problem, x, y, blocks(0), blocks(1), width);
  const auto run = [&](auto element) {
    using T = decltype(element);
    launch(backward_kernel<T>(problem.kernel[0], stride), grid_for(g.items), kThreads, stream, b.members,
           b.in<std::uint8_t>(0), b.in<T>(1), b.out<T>(0), g);
  };
  type == DType::bf16 ? run(bf16{}) : run(float{});
  return true;
}

}  // namespace convoy::kernels::cuda
