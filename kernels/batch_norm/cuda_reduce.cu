// The operations of batch normalisation that compute sums on the device: statistics and
// backward_reduce. Each is one launch and reads the activations once.
#include "kernels/batch_norm/cuda_statistics.cuh"

namespace convoy::kernels::cuda {
namespace {

// A Source for the kernel statistics() (cuda_statistics.cuh) that reads the matrix from memory.
template <typename T, int V>
struct Matrix {
  using Element = T;
  static constexpr int kWidth = V, kRows = 4;
  static constexpr bool kWrites = false;
  using Loaded = Pack<T, V>;
  const T* x;

  __device__ Matrix moved(std::ptrdiff_t stride) const { return {of_member(x, stride)}; }
  __device__ __forceinline__ Loaded load(std::int64_t at) const { return load_pack<V>(x + at); }
  __device__ __forceinline__ Pack<T, V> pack(const Loaded& loaded, std::int64_t) const { return loaded; }
};

// Tells backward where the ReLU's output is 0: from_x computes the output again from x, from_y
// reads it, and from_bits reads the ReLU's mask. `activation` computes the derivative of another
// activation from x.
enum class Mask : std::uint8_t { none, from_x, from_y, from_bits, activation };

struct ReduceOperands {
  // y is null unless the mask is from_y. dy2 is the gradient from a second operation that reads y,
  // or null.
  const void *x, *dy, *y, *dy2;
  const std::uint8_t* bits;  // the bits of the ReLU's mask, or null
  const double* sums;
  const float *gamma, *beta;
  double* dsums;
  float *dgamma, *dbeta;
  void* g;  // null if g is not an output
  const StepControl* control;
  float* partials;
  unsigned* tickets;
  ActivationProblem activation;

  template <typename Visit>
  __device__ void each_pointer(Visit visit) {
    visit(x, dy, y, dy2, bits, sums, gamma, beta, dsums, dgamma, dbeta, g, control, partials);
  }
};

template <typename T>
struct Channel {
  Affine<T> affine;
  double invstd;
};

// Returns how many rows a thread loads at once. A thread that reads more tensors loads fewer rows,
// to save registers. `second` says whether it reads dy2, the gradient of a second consumer of y.
__host__ __device__ constexpr int rows_in_flight(Mask mask, bool second) {
  return mask == Mask::from_y || second ? 2 : 4;
}

// Calls visit(mask, second, kind of the activation) with compile-time constants, because branches
// on run-time values would delay the loads.
template <typename Visit>
void with_inputs(const BatchNormProblem& problem, Mask mask, Visit visit) {
  constexpr std::integral_constant<int, kNoActivation> kNone{};
  const auto of = [&](auto known) {
    return problem.second_gradient ? visit(known, std::true_type{}, kNone)
                                   : visit(known, std::false_type{}, kNone);
  };
  switch (mask) {
    case Mask::none:
      return of(std::integral_constant<Mask, Mask::none>{});
    case Mask::from_x:
      return of(std::integral_constant<Mask, Mask::from_x>{});
    case Mask::from_y:
      return of(std::integral_constant<Mask, Mask::from_y>{});
    case Mask::from_bits:
      return of(std::integral_constant<Mask, Mask::from_bits>{});
    case Mask::activation:
      return activation::with_kind(problem.activation->kind, [&](auto kind) {
        constexpr std::integral_constant<Mask, Mask::activation> kMask{};
        constexpr std::integral_constant<int, static_cast<int>(kind())> kKind{};
        problem.second_gradient ? visit(kMask, std::true_type{}, kKind)
                                : visit(kMask, std::false_type{}, kKind);
      });
  }
}

// Computes dsums, dgamma and dbeta (batch_norm.h) from the sums of g and of g (x - mean) over each
// column. Also writes g itself, unless ReduceOperands::g is null.
template <typename T, int V, Mask mask, bool kSecond, int kActivation>
__global__ void __launch_bounds__(kReduceThreads, 1)
    backward_reduce(const __grid_constant__ ReduceOperands of_first, bool synchronised, float epsilon,
                    const __grid_constant__ ColumnGrid grid, std::ptrdiff_t member_stride) {
  const ReduceOperands o = of_member(of_first, member_stride);
  __shared__ __align__(16) char shared[kSharedBytes];
  __shared__ Channel<T> channels[kMostTile * V];
  constexpr int kRows = rows_in_flight(mask, kSecond);
  const Place place = place_in<V>(grid);
  const std::int64_t valid = valid_rows(o.control, grid);
  const std::int64_t rows = !place.active ? 0 : o.g != nullptr ? grid.rows : valid;
  const std::int64_t stride = std::int64_t{grid.row_blocks} * grid.height;
  for (int i = threadIdx.x; i < place.columns; i += kReduceThreads) {
    const int channel = grid.channel_of(place.first + i);
    const double inverse = inverse_of(count_of(o.control, synchronised, grid.pixels));
    const Moments moments = moments_of(o.sums, grid.channels, channel, inverse, epsilon);
    channels[i] = {Affine<T>::of(moments, o.gamma[channel], o.beta[channel]), moments.invstd};
  }
  __syncthreads();
  Affine<T> affine[V];
  float sum[2 * V] = {};
#pragma unroll
  for (int i = 0; i < V; ++i) affine[i] = channels[place.active ? place.tx * V + i : 0].affine;
  for (std::int64_t row = std::int64_t{place.row_block} * grid.height + place.ty; row < rows;
       row += kRows * stride) {
    // y, dy2 and bits are loaded only if they are needed.
    Pack<T, V> x[kRows], dy[kRows], y[kRows], dy2[kRows];
    unsigned bits[kRows];
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      const std::int64_t at = (row + k * stride) * grid.columns + place.column;
      const bool in = row + k * stride < valid;
      x[k] = in ? load_pack<V>(static_cast<const T*>(o.x) + at) : zero_pack<T, V>();
      dy[k] = in ? load_pack<V>(static_cast<const T*>(o.dy) + at) : zero_pack<T, V>();
      if constexpr (mask == Mask::from_y)
        y[k] = in ? load_pack<V>(static_cast<const T*>(o.y) + at) : zero_pack<T, V>();
      if constexpr (mask == Mask::from_bits) bits[k] = in ? o.bits[at / V] : 0;
      if constexpr (kSecond)
        dy2[k] = in ? load_pack<V>(static_cast<const T*>(o.dy2) + at) : zero_pack<T, V>();
    }
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      float xs[V], g[V], other[V];
      unpack(x[k], xs);
      unpack(dy[k], g);
      if constexpr (kSecond) {
        unpack(dy2[k], other);
#pragma unroll
        for (int i = 0; i < V; ++i) g[i] += other[i];
      }
      if constexpr (mask == Mask::from_y) {
        unpack(y[k], other);
#pragma unroll
        for (int i = 0; i < V; ++i)
          if (!(other[i] > 0)) g[i] = 0;
      }
#pragma unroll
      for (int i = 0; i < V; ++i) {
        if (mask == Mask::from_x && !(affine[i](xs[i]) > 0)) g[i] = 0;
        if (mask == Mask::from_bits && (bits[k] >> i & 1) == 0) g[i] = 0;
        if constexpr (mask == Mask::activation)
          g[i] *= activation::derivative_of<ActivationKind{kActivation}>(o.activation, affine[i](xs[i]));
        sum[i] += g[i];
        sum[V + i] = fmaf(g[i], xs[i] - affine[i].mean, sum[V + i]);
      }
      if (o.g != nullptr && row + k * stride < rows)
        store_pack(static_cast<T*>(o.g) + (row + k * stride) * grid.columns + place.column, pack_of<T>(g));
    }
  }
  finish_sums(
      sum, grid, place, shared, o.partials, o.tickets + blockIdx.z * grid.tickets(),
      [&](int i, double sum_g_x) { return sum_g_x * channels[i].invstd; },
      [&](int channel, double sum_g, double sum_g_xhat) {
        o.dsums[channel] = sum_g;
        o.dsums[grid.channels + channel] = sum_g_xhat;
        o.dbeta[channel] = static_cast<float>(sum_g);
        o.dgamma[channel] = static_cast<float>(sum_g_xhat);
      });
}

void require_vectors(const char* operation, std::initializer_list<TensorDesc*> vectors, DType type,
                     const Shape& shape) {
  for (TensorDesc* desc : vectors) {
    require_layout(operation, *desc, Layout::row_major);
    require_dtype(operation, "a per-channel operand", *desc, type);
    require_shape(operation, "a per-channel operand", *desc, shape);
  }
}

}  // namespace

Kernel batch_norm_statistics(const BatchNormProblem&, KernelRequest& request) {
  const char* operation = "batch_norm_statistics";
  require_counts(operation, request, 1, 1);
  require_activation_layout(operation, request.inputs[0]);
  const ImageExtents e = image_extents(request.inputs[0].shape);
  require_vectors(operation, {&request.outputs[0]}, DType::f64, {2, e.c});
  const DType type = common_dtype(operation, {&request.inputs[0]});
  const ColumnGrid grid = statistics_grid(e, type, Matrix<float, 1>::kRows);
  const auto body = [=](const BoundOperands& operands, unsigned* tickets, Stream stream) {
    const StepControl* control = operands.control();
    with_packing(type, {grid.columns}, [&](auto packing) {
      using P = decltype(packing);
      using Source = Matrix<typename P::Type, P::kWidth>;
      launch(statistics<Source>, grid.blocks(), kReduceThreads, stream, operands.members,
             Source{operands.in<typename P::Type>(0)}, control, grid,
             operands.scratch<StatisticsSum<typename P::Type>>(), tickets, operands.out<double>(0));
    });
  };
  return ticketed_kernel(body, grid.tickets(), {}, statistics_bytes(grid, type));
}

Kernel batch_norm_backward_reduce(const BatchNormProblem& problem, KernelRequest& request) {
  const char* operation = "batch_norm_backward_reduce";
  const bool has_y = problem.relu && problem.residual;
  const int inputs = 5 + has_y + problem.second_gradient, y_at = 5, dy2_at = 5 + has_y;
  require_batch_norm_flags(operation, problem);
  require_counts(operation, request, inputs, 3 + problem.write_gradient);
  auto& in = request.inputs;
  auto& out = request.outputs;
  const ImageExtents e = image_extents(in[0].shape);
  require_vectors(operation, {&in[1], &out[0]}, DType::f64, {2, e.c});
  require_vectors(operation, {&in[2], &in[3], &out[1], &out[2]}, DType::f32, {e.c});
  std::vector<const TensorDesc*> activations;
  for (const int at : {0, 4, y_at, dy2_at})
    if (at < inputs && !(at == y_at && problem.relu_mask))
      require_activation_layout(operation, in[at]), activations.push_back(&in[at]);
  if (problem.write_gradient) require_activation_layout(operation, out[3]), activations.push_back(&out[3]);
  for (const TensorDesc* desc : activations) require_shape(operation, "an activation", *desc, in[0].shape);
  const DType type = common_dtype(operation, activations);
  if (problem.relu_mask) {
    const TensorDesc expected = relu_mask_of(in[0]);
    require_dtype(operation, "the mask", in[y_at], expected.dtype);
    require_shape(operation, "the mask", in[y_at], expected.shape);
  }
  const bool reads_y = has_y && !problem.relu_mask;
  const Mask mask = problem.activation  ? Mask::activation
                    : !problem.relu     ? Mask::none
                    : problem.relu_mask ? Mask::from_bits
                    : has_y             ? Mask::from_y
                                        : Mask::from_x;
  const ColumnGrid grid =
      column_grid(e, type, kReduceThreads, rows_in_flight(mask, problem.second_gradient), kMultiprocessors);
  const auto body = [=](const BoundOperands& b, unsigned* tickets, Stream stream) {
    const StepControl* control = b.control();
    const ReduceOperands o{b.inputs[0],
                           b.inputs[4],
                           reads_y ? b.inputs[y_at] : nullptr,
                           problem.second_gradient ? b.inputs[dy2_at] : nullptr,
                           problem.relu_mask ? b.in<std::uint8_t>(y_at) : nullptr,
                           b.in<double>(1),
                           b.in(2),
                           b.in(3),
                           b.out<double>(0),
                           b.out(1),
                           b.out(2),
                           problem.write_gradient ? b.outputs[3] : nullptr,
                           control,
                           b.scratch<float>(),
                           tickets,
                           activation_of(problem)};
    with_packing(type, {grid.columns}, [&](auto packing) {
      using P = decltype(packing);
      with_inputs(problem, mask, [&](auto known_mask, auto second, auto kind) {
        launch(backward_reduce<typename P::Type, P::kWidth, known_mask(), second(), kind()>, grid.blocks(),
               kReduceThreads, stream, b.members, o, problem.synchronised, problem.epsilon, grid);
      });
    });
  };
  std::vector<std::pair<int, int>> in_place;
  if (problem.write_gradient) in_place = {{4, 3}};
  return ticketed_kernel(body, grid.tickets(), in_place, partial_bytes(grid, sizeof(float)));
}

}  // namespace convoy::kernels::cuda
