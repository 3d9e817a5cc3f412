// Layer normalisation on the device. `lanes` threads of a warp compute a pixel together, and keep
// its channels in registers. If there are too many channels, they are read several times, from the
// L1 cache.
#include "kernels/device/cuda_column_sums.cuh"
#include "kernels/layer_norm/layer_norm.h"

namespace convoy::kernels::cuda {
namespace {

struct Rows {
  std::int64_t rows;
  int channels, packs;  // the elements and the packs of a row; a row is a pixel
  int lanes;            // threads that compute a row together; a power of two, at most 32
  float epsilon;

  __device__ int groups() const { return kThreads / lanes; }
};

// Returns the sum of `value` over the threads of a row. Each of these threads gets the sum.
__device__ __forceinline__ float row_sum(float value, int lanes) {
  for (int lane = lanes / 2; lane > 0; lane /= 2) value += __shfl_xor_sync(0xffffffffu, value, lane);
  return value;
}

// The packs (16 bytes) of a row that belong to one thread. The thread keeps kHeld packs in
// registers. If kHeld is 0, it reads all of its packs from memory each time.
template <typename T, int V, int kHeld>
struct RowPart {
  const T* row;
  int lane, lanes, packs;
  Pack<T, V> held[kHeld > 0 ? kHeld : 1];

  __device__ __forceinline__ RowPart(const T* from, int lane_, const Rows& r)
      : row(from), lane(lane_), lanes(r.lanes), packs(from == nullptr ? 0 : r.packs) {
#pragma unroll
    for (int k = 0; k < kHeld; ++k)
      if (lane + k * lanes < packs) held[k] = load_pack<V>(row + (lane + k * lanes) * V);
  }
  // Calls visit(values, pack, k) for each pack of this thread. k is the pack's index in `held`.
  template <typename Visit>
  __device__ __forceinline__ void for_each(Visit visit) const {
    float value[V];
    if constexpr (kHeld > 0) {
#pragma unroll
      for (int k = 0; k < kHeld; ++k)
        if (lane + k * lanes < packs) {
          unpack(held[k], value);
          visit(value, lane + k * lanes, k);
        }
    } else {
      for (int pack = lane; pack < packs; pack += lanes) {
        unpack(load_pack<V>(row + pack * V), value);
        visit(value, pack, 0);
      }
    }
  }
};

template <typename T, int V, int kHeld>
__global__ void forward(const T* x, const float* gamma, const float* beta, T* y, float* moments, Rows r,
                        std::ptrdiff_t member_stride) {
  move_to_member(member_stride, x, gamma, beta, y, moments);
  const int lane = static_cast<int>(threadIdx.x) % r.lanes;
  const std::int64_t row = std::int64_t{blockIdx.x} * r.groups() + static_cast<int>(threadIdx.x) / r.lanes;
  // Threads without a row must not return, because sums over a row need all threads of the warp.
  const bool there = row < r.rows;
  const RowPart<T, V, kHeld> part(there ? x + row * r.channels : nullptr, lane, r);
  float sum = 0, squares = 0;
  part.for_each([&](const float(&value)[V], int, int) {
#pragma unroll
    for (int i = 0; i < V; ++i) sum += value[i];
  });
  const float mean = row_sum(sum, r.lanes) / static_cast<float>(r.channels);
  part.for_each([&](const float(&value)[V], int, int) {
#pragma unroll
    for (int i = 0; i < V; ++i) squares = fmaf(value[i] - mean, value[i] - mean, squares);
  });
  const float variance = row_sum(squares, r.lanes) / static_cast<float>(r.channels);
  const float invstd = 1.0f / sqrtf(variance + r.epsilon);
  part.for_each([&](const float(&value)[V], int pack, int) {
    float scale[V], shift[V];
    unpack(load_pack<V>(gamma + pack * V), scale);
    unpack(load_pack<V>(beta + pack * V), shift);
#pragma unroll
    for (int i = 0; i < V; ++i) shift[i] = fmaf((value[i] - mean) * invstd, scale[i], shift[i]);
    store_pack(y + row * r.channels + pack * V, pack_of<T>(shift));
  });
  if (there && lane == 0) moments[row] = mean, moments[r.rows + row] = invstd;
}

// Writes dx. If kHeld > 0, also writes the partial sums of dgamma and dbeta, [blocks, 2, channels].
template <typename T, int V, int kHeld>
__global__ void __launch_bounds__(kThreads, 2)
    backward(const T* x, const float* gamma, const T* dy, const float* moments, T* dx, Rows r,
             float* partials, std::ptrdiff_t member_stride) {
  move_to_member(member_stride, x, gamma, dy, moments, dx, partials);
  const int lane = static_cast<int>(threadIdx.x) % r.lanes, group = static_cast<int>(threadIdx.x) / r.lanes;
  float sums[2][kHeld > 0 ? kHeld : 1][V] = {};
  for (std::int64_t first = std::int64_t{blockIdx.x} * r.groups(); first < r.rows;
       first += std::int64_t{gridDim.x} * r.groups()) {
    const std::int64_t row = first + group;
    const bool there = row < r.rows;
    const RowPart<T, V, kHeld> part(there ? x + row * r.channels : nullptr, lane, r);
    const RowPart<T, V, kHeld> gradient(there ? dy + row * r.channels : nullptr, lane, r);
    const float mean = there ? moments[row] : 0, invstd = there ? moments[r.rows + row] : 0;
    // Gets the elements of dy for a pack of x, from registers or from memory.
    const auto gradient_of = [&](int pack, int k, float(&to)[V]) {
      if constexpr (kHeld > 0)
        unpack(gradient.held[k], to);
      else
        unpack(load_pack<V>(gradient.row + pack * V), to);
    };
    float g = 0, gx = 0;
    part.for_each([&](const float(&value)[V], int pack, int k) {
      float dy_value[V], scale[V];
      gradient_of(pack, k, dy_value);
      unpack(load_pack<V>(gamma + pack * V), scale);
#pragma unroll
      for (int i = 0; i < V; ++i) {
        const float xhat = (value[i] - mean) * invstd;
        g = fmaf(dy_value[i], scale[i], g);
        gx = fmaf(dy_value[i] * scale[i], xhat, gx);
        if constexpr (kHeld > 0) {
          sums[0][k][i] = fmaf(dy_value[i], xhat, sums[0][k][i]);
          sums[1][k][i] += dy_value[i];
        }
      }
    });
    const float g_mean = row_sum(g, r.lanes) / static_cast<float>(r.channels);
    const float gx_mean = row_sum(gx, r.lanes) / static_cast<float>(r.channels);
    part.for_each([&](const float(&value)[V], int pack, int k) {
      float dy_value[V], scale[V];
      gradient_of(pack, k, dy_value);
      unpack(load_pack<V>(gamma + pack * V), scale);
#pragma unroll
      for (int i = 0; i < V; ++i) {
        const float xhat = (value[i] - mean) * invstd;
        scale[i] = invstd * (dy_value[i] * scale[i] - g_mean - xhat * gx_mean);
      }
      store_pack(dx + row * r.channels + pack * V, pack_of<T>(scale));
    });
  }
  if constexpr (kHeld > 0) {
    __shared__ float shared[kThreads * V];
    float* const own = shared + static_cast<int>(threadIdx.x) * V;
#pragma unroll
    for (int which = 0; which < 2; ++which)
#pragma unroll
      for (int k = 0; k < kHeld; ++k) {
        __syncthreads();
#pragma unroll
        for (int i = 0; i < V; ++i) own[i] = sums[which][k][i];
        for (int half = r.groups() / 2; half > 0; half /= 2) {
          __syncthreads();
          if (group < half)
#pragma unroll
            for (int i = 0; i < V; ++i) own[i] += own[half * r.lanes * V + i];
        }
        const int pack = lane + k * r.lanes;
        if (group == 0 && pack < r.packs)
#pragma unroll
          for (int i = 0; i < V; ++i)
            partials[(2 * std::int64_t{blockIdx.x} + which) * r.channels + pack * V + i] = own[i];
      }
  }
}

// The Source of column_sums() (cuda_column_sums.cuh) for dgamma and dbeta. It is used if rows do
// not fit into registers.
template <typename T, int V>
struct ScaleGradient {
  static constexpr int kWidth = V, kSums = 2;
  const T *x, *dy;
  const float* moments;
  std::int64_t rows;

  template <typename Visit>
  __device__ void each_pointer(Visit visit) {
    visit(x, dy, moments);
  }
  struct Loaded {
    Pack<T, V> x, dy;
  };
  __device__ __forceinline__ Loaded load(std::int64_t at) const {
    return {load_pack<V>(x + at), load_pack<V>(dy + at)};
  }
  __device__ __forceinline__ void visit(const Loaded& loaded, std::int64_t, std::int64_t row, std::int64_t,
                                        int, float (&sums)[2][V]) const {
    float value[V], gradient[V];
    unpack(loaded.x, value);
    unpack(loaded.dy, gradient);
    const float mean = moments[row], invstd = moments[rows + row];
#pragma unroll
    for (int i = 0; i < V; ++i) {
      sums[0][i] = fmaf(gradient[i], (value[i] - mean) * invstd, sums[0][i]);
      sums[1][i] += gradient[i];
    }
  }
};

constexpr int kMostHeld = 4;

// Chooses how many threads compute a row: the fewest that give each thread at most three packs, but
// at most a warp.
Rows rows_of(const ImageExtents& e, int width, float epsilon) {
  Rows r{e.n * e.pixels(), static_cast<int>(e.c), static_cast<int>(e.c) / width, 1, epsilon};
  while (r.lanes < 32 && ceil_div(r.packs, r.lanes) > 3) r.lanes *= 2;
  return r;
}
// Returns how many packs a thread keeps in registers, or 0 if there are too many.
int held_by(const Rows& r) {
  const auto held = static_cast<int>(ceil_div(r.packs, r.lanes));
  return held <= kMostHeld ? held : 0;
}

template <typename Visit>
void with_held(int held, Visit visit) {
  switch (held) {
    case 1:
      return visit(std::integral_constant<int, 1>{});
    case 2:
      return visit(std::integral_constant<int, 2>{});
    case 3:
      return visit(std::integral_constant<int, 3>{});
    case 4:
      return visit(std::integral_constant<int, 4>{});
    default:
      return visit(std::integral_constant<int, 0>{});
  }
}

// Returns how many blocks to launch. At its end, a block adds up the sums of its threads. Blocks
// should be few, so that this is rare: each thread computes several rows, and all blocks run at the
// same time.
unsigned blocks_for(const Rows& r) {
  constexpr int kRowsAThread = 4;
  return static_cast<unsigned>(
      std::clamp<std::int64_t>(ceil_div(r.rows * r.lanes, kThreads * kRowsAThread), 1, 2 * kMultiprocessors));
}

int width_of(DType type, std::int64_t channels) {
  const int wide = type == DType::bf16 ? kPackWidth<bf16> : kPackWidth<float>;
  return channels % wide == 0 ? wide : 1;
}

}  // namespace

Kernel layer_norm_forward(const LayerNormProblem& problem, KernelRequest& request) {
  require_layer_norm_forward(request);
  TensorDesc &x = request.inputs[0], &y = request.outputs[0];
  require_activation_layout("layer_norm_forward", x);
  match_layout("layer_norm_forward", y, x);
  const DType type = common_dtype("layer_norm_forward", {&x, &y});
  const ImageExtents e = image_extents(x.shape);
  const Rows r = rows_of(e, width_of(type, e.c), problem.epsilon);
  const auto body = [=](const BoundOperands& b, Stream stream) {
    with_packing(type, {e.c}, [&](auto packing) {
      using P = decltype(packing);
      using T = typename P::Type;
      with_held(held_by(r), [&](auto held) {
        launch(forward<T, P::kWidth, decltype(held)::value>, grid_for(r.rows * r.lanes), kThreads, stream,
               b.members, b.in<T>(0), b.in(1), b.in(2), b.out<T>(0), b.out(1), r);
      });
    });
  };
  return device_kernel(body, {{0, 0}});
}

Kernel layer_norm_backward(const LayerNormProblem& problem, KernelRequest& request) {
  require_layer_norm_backward(request);
  TensorDesc &x = request.inputs[0], &dy = request.inputs[2], &dx = request.outputs[0];
  require_activation_layout("layer_norm_backward", x);
  for (TensorDesc* desc : {&dy, &dx}) match_layout("layer_norm_backward", *desc, x);
  const DType type = common_dtype("layer_norm_backward", {&x, &dy, &dx});
  const ImageExtents e = image_extents(x.shape);
  const Rows r = rows_of(e, width_of(type, e.c), problem.epsilon);
  const int held = held_by(r);
  const SumGrid grid = sum_grid(1, r.rows, e.c, type);
  const auto body = [=](const BoundOperands& b, Stream stream) {
    const SumOutputs<float, 2> scales{{b.out(1), b.out(2)}};
    auto* const partials = b.scratch<float>();
    with_packing(type, {e.c}, [&](auto packing) {
      using P = decltype(packing);
      using T = typename P::Type;
      if (held == 0)
        sum_columns(ScaleGradient<T, P::kWidth>{b.in<T>(0), b.in<T>(2), b.in(3), r.rows}, grid, partials,
                    scales, stream, b.members);
      with_held(held, [&](auto count) {
        launch(backward<T, P::kWidth, decltype(count)::value>, blocks_for(r), kThreads, stream, b.members,
               b.in<T>(0), b.in(1), b.in<T>(2), b.in(3), b.out<T>(0), r, partials);
      });
    });
    if (held > 0)
      finish_columns(partials, 1, static_cast<int>(blocks_for(r)), r.channels, 1, scales, stream, b.members);
  };
  const std::size_t partials =
      held > 0 ? std::size_t{2} * blocks_for(r) * static_cast<std::size_t>(e.c) * sizeof(float)
               : grid.partial_bytes(2);
  return device_kernel(body, {{0, 0}, {2, 0}}, partials);
}

}  // namespace convoy::kernels::cuda
