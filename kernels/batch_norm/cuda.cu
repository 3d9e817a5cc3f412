// Batch normalisation on the device: the operations that write activations (forward, inference,
// backward).
#include "kernels/batch_norm/cuda.cuh"
#include "kernels/device/cuda_launch.cuh"

namespace convoy::kernels::cuda {
namespace {

constexpr int kRows = 4;  // rows that a thread loads at once

struct ForwardOperands {
  const void *x, *residual;  // residual may be null
  void* y;
  std::uint8_t* mask;  // null if forward writes no mask
  const double* sums;  // null in inference, which uses the running statistics
  const float *gamma, *beta;
  float *running_mean, *running_var;
  const StepControl* control;
  ActivationProblem activation;

  template <typename Visit>
  __device__ void each_pointer(Visit visit) {
    visit(x, residual, y, mask, sums, gamma, beta, running_mean, running_var, control);
  }
};

__device__ __forceinline__ void update_running(const ForwardOperands& o, const Moments& moments, double count,
                                               float momentum, int channel) {
  const double unbiased = count > 1 ? moments.variance * (count / (count - 1)) : moments.variance;
  const double keep = 1.0 - momentum;
  o.running_mean[channel] = static_cast<float>(keep * o.running_mean[channel] + momentum * moments.mean);
  o.running_var[channel] = static_cast<float>(keep * o.running_var[channel] + momentum * unbiased);
}

// Computes the constants that normalise each column of a thread block. In forward, the blocks that
// compute the first rows also update the running statistics.
template <typename T>
__device__ __forceinline__ void store_affines(const ForwardOperands& o, const BatchNormProblem& problem,
                                              const ColumnGrid& grid, const Place& place,
                                              Affine<T>* affines) {
  for (int i = threadIdx.x; i < place.columns; i += kThreads) {
    const int column = place.first + i, channel = grid.channel_of(column);
    Moments moments;
    if (o.sums != nullptr) {
      const double count = count_of(o.control, problem.synchronised, grid.pixels);
      moments = moments_of(o.sums, grid.channels, channel, inverse_of(count), problem.epsilon);
      if (place.row_block == 0 && column == channel && count > 0)
        update_running(o, moments, count, problem.momentum, channel);
    } else {
      const double mean = problem.linear ? 0 : o.running_mean[channel];
      moments = {mean, inverse_root(double(o.running_var[channel]) + problem.epsilon), 0};
    }
    affines[i] = Affine<T>::of(moments, o.gamma[channel], problem.linear ? 0 : o.beta[channel]);
  }
}

template <typename T, int V, int kActivation>
__global__ void __launch_bounds__(kThreads, 3)
    forward(const __grid_constant__ ForwardOperands of_first,
            const __grid_constant__ BatchNormProblem problem, const __grid_constant__ ColumnGrid grid,
            std::ptrdiff_t member_stride) {
  const ForwardOperands o = of_member(of_first, member_stride);
  __shared__ Affine<T> shared[kMostTile * V];
  const Place place = place_in<V, true>(grid);
  const std::int64_t row = std::int64_t{place.row_block} * grid.height * kRows + place.ty;
  const std::int64_t rows = place.active ? grid.rows : 0;
  Pack<T, V> x[kRows], residual[kRows];
#pragma unroll
  for (int k = 0; k < kRows; ++k) {  // these loads are under way while the constants are computed
    if (row + k * grid.height >= rows) continue;
    const std::int64_t at = (row + k * grid.height) * grid.columns + place.column;
    x[k] = load_pack<V>(static_cast<const T*>(o.x) + at);
    if (o.residual != nullptr) residual[k] = load_pack<V>(static_cast<const T*>(o.residual) + at);
  }
  store_affines(o, problem, grid, place, shared);
  __syncthreads();
  Affine<T> affine[V];
#pragma unroll
  for (int i = 0; i < V; ++i) affine[i] = shared[place.tx * V + i];
#pragma unroll
  for (int k = 0; k < kRows; ++k) {
    if (row + k * grid.height >= rows) continue;
    float value[V];
    unpack(x[k], value);
#pragma unroll
    for (int i = 0; i < V; ++i) value[i] = affine[i](value[i]);
    if (o.residual != nullptr) {
      float other[V];
      unpack(residual[k], other);
#pragma unroll
      for (int i = 0; i < V; ++i) value[i] += other[i];
    }
    if constexpr (kActivation != kNoActivation) {
#pragma unroll
      for (int i = 0; i < V; ++i)
        value[i] = activation::value_of<ActivationKind{kActivation}>(o.activation, value[i]);
    } else if (problem.relu) {
#pragma unroll
      for (int i = 0; i < V; ++i) value[i] = rectified(value[i]);
    }
    const std::int64_t at = (row + k * grid.height) * grid.columns + place.column;
    const Pack<T, V> y = pack_of<T>(value);
    store_pack(static_cast<T*>(o.y) + at, y);
    if (o.mask != nullptr) o.mask[at / V] = positive_bits(y);
  }
}

// Computes the scale and the shift of each channel, as forward does for bf16, and updates the
// running statistics.
__global__ void affine(const __grid_constant__ ForwardOperands of_first,
                       const __grid_constant__ BatchNormProblem problem, int channels,
                       std::ptrdiff_t member_stride) {
  const ForwardOperands o = of_member(of_first, member_stride);
  const int channel = int(blockIdx.x) * int(blockDim.x) + int(threadIdx.x);
  if (channel >= channels) return;
  const double count = count_of(o.control, problem.synchronised, problem.pixels);
  const Moments moments = moments_of(o.sums, channels, channel, inverse_of(count), problem.epsilon);
  if (count > 0) update_running(o, moments, count, problem.momentum, channel);
  const auto one = Affine<bf16>::of(moments, o.gamma[channel], o.beta[channel]);
  static_cast<float2*>(o.y)[channel] = {one.scale, one.shift};
}

struct BackwardOperands {
  // dx2 is the gradient from a second operation that reads x, or null.
  const void *x, *dy, *dx2;
  void* dx;
  const double *sums, *dsums;
  const float *gamma, *beta;
  const StepControl* control;
  ActivationProblem activation;

  template <typename Visit>
  __device__ void each_pointer(Visit visit) {
    visit(x, dy, dx2, dx, sums, dsums, gamma, beta, control);
  }
};

// Per-channel constants of dx = scale g + slope (x - mean) + offset, with slope = -scale invstd
// mean(g xhat) and offset = -scale mean(g).
template <typename T>
struct Gradient {
  Affine<T> affine;
  float slope, offset;

  __device__ __forceinline__ static Gradient of(const BackwardOperands& o, const BatchNormProblem& problem,
                                                const ColumnGrid& grid, int channel) {
    const double inverse = inverse_of(count_of(o.control, problem.synchronised, grid.pixels));
    const Moments moments = moments_of(o.sums, grid.channels, channel, inverse, problem.epsilon);
    const double scale = moments.invstd * o.gamma[channel];
    const double slope = -scale * moments.invstd * o.dsums[grid.channels + channel] * inverse;
    const double offset = -scale * o.dsums[channel] * inverse;
    return {Affine<T>::of(moments, o.gamma[channel], o.beta[channel]), static_cast<float>(slope),
            static_cast<float>(Affine<T>::kCentred ? offset : offset - moments.mean * slope)};
  }
  // Returns dx for one element. With `masks`, multiplies g by the derivative of the ReLU first.
  template <int kActivation>
  __device__ __forceinline__ float of_input(const ActivationProblem& activation, float x, float g,
                                            bool masks) const {
    if constexpr (kActivation != kNoActivation)
      g *= activation::derivative_of<ActivationKind{kActivation}>(activation, affine(x));
    else if (masks && !(affine(x) > 0))
      g = 0;
    return fmaf(g, affine.scale, fmaf(Affine<T>::kCentred ? x - affine.mean : x, slope, offset));
  }
};

// Computes dx. With kSecond, a second operation reads x, and dx2, the gradient from it, is added to
// dx. kSecond is a template argument, because a test at run time would delay the loads.
template <typename T, int V, bool kSecond, int kActivation>
__global__ void __launch_bounds__(kThreads, 2)
    backward(const __grid_constant__ BackwardOperands of_first,
             const __grid_constant__ BatchNormProblem problem, bool masks,
             const __grid_constant__ ColumnGrid grid, std::ptrdiff_t member_stride) {
  const BackwardOperands o = of_member(of_first, member_stride);
  __shared__ Gradient<T> shared[kMostTile * V];
  const Place place = place_in<V, true>(grid);
  const std::int64_t row = std::int64_t{place.row_block} * grid.height * kRows + place.ty;
  const std::int64_t rows = place.active ? grid.rows : 0;
  Pack<T, V> x[kRows], dy[kRows], dx2[kSecond ? kRows : 1];
#pragma unroll
  for (int k = 0; k < kRows; ++k) {  // these loads are under way while the constants are computed
    if (row + k * grid.height >= rows) continue;
    const std::int64_t at = (row + k * grid.height) * grid.columns + place.column;
    x[k] = load_pack_past_l1<V>(static_cast<const T*>(o.x) + at);
    dy[k] = load_pack_past_l1<V>(static_cast<const T*>(o.dy) + at);
    if constexpr (kSecond) dx2[k] = load_pack_past_l1<V>(static_cast<const T*>(o.dx2) + at);
  }
  const std::int64_t valid = valid_rows(o.control, grid);
  for (int i = threadIdx.x; i < place.columns; i += kThreads)
    shared[i] = Gradient<T>::of(o, problem, grid, grid.channel_of(place.first + i));
  __syncthreads();
  Gradient<T> gradient[V];
#pragma unroll
  for (int i = 0; i < V; ++i) gradient[i] = shared[place.tx * V + i];
#pragma unroll
  for (int k = 0; k < kRows; ++k) {
    if (row + k * grid.height >= rows) continue;
    float xs[V], g[V];
    unpack(x[k], xs);
    unpack(dy[k], g);
#pragma unroll
    for (int i = 0; i < V; ++i)
      g[i] = gradient[i].template of_input<kActivation>(o.activation, xs[i], g[i], masks);
    if constexpr (kSecond) {
      float other[V];
      unpack(dx2[k], other);
#pragma unroll
      for (int i = 0; i < V; ++i) g[i] += other[i];
    }
    store_pack(static_cast<T*>(o.dx) + (row + k * grid.height) * grid.columns + place.column,
               row + k * grid.height < valid ? pack_of<T>(g) : zero_pack<T, V>());
  }
}

void require_vector(const char* operation, TensorDesc& desc, DType type, const Shape& shape) {
  require_layout(operation, desc, Layout::row_major);
  require_dtype(operation, "a per-channel operand", desc, type);
  require_shape(operation, "a per-channel operand", desc, shape);
}

// `sums_at` is the position of the input `sums`: 1 in forward, and 0 in inference, which has no
// such input.
Kernel normalise(const char* operation, const BatchNormProblem& problem, KernelRequest& request,
                 int sums_at) {
  require_batch_norm_activation(operation, problem);
  const int gamma_at = sums_at + 1, residual_at = gamma_at + 4;
  const bool masks = problem.relu_mask && sums_at != 0;
  require_counts(operation, request, residual_at + problem.residual, 1 + masks);
  auto& in = request.inputs;
  const ImageExtents e = image_extents(in[0].shape);
  if (sums_at != 0) require_vector(operation, in[sums_at], DType::f64, {2, e.c});
  for (int at = gamma_at; at < residual_at; ++at) require_vector(operation, in[at], DType::f32, {e.c});
  TensorDesc& other = in[problem.residual ? residual_at : 0];
  for (TensorDesc* desc : {&in[0], &other, &request.outputs[0]}) {
    require_activation_layout(operation, *desc);
    require_shape(operation, "an activation", *desc, in[0].shape);
  }
  const DType type = common_dtype(operation, {&in[0], &other, &request.outputs[0]});
  if (masks) request.outputs[1] = relu_mask_of(request.outputs[0]);
  const ColumnGrid grid = column_grid(e, type, kThreads, kRows);
  const auto body = [=](const BoundOperands& b, Stream stream) {
    const ForwardOperands o{b.inputs[0],
                            problem.residual ? b.inputs[residual_at] : nullptr,
                            b.outputs[0],
                            masks ? b.out<std::uint8_t>(1) : nullptr,
                            sums_at != 0 ? b.in<double>(sums_at) : nullptr,
                            b.in(gamma_at),
                            b.in(gamma_at + 1),
                            b.inout(gamma_at + 2),
                            b.inout(gamma_at + 3),
                            sums_at != 0 ? b.control() : nullptr,
                            activation_of(problem)};
    with_packing(type, {grid.columns}, [&](auto packing) {
      using P = decltype(packing);
      with_activation(problem, [&](auto kind) {
        launch(forward<typename P::Type, P::kWidth, kind()>, grid.blocks(), kThreads, stream, b.members, o,
               problem, grid);
      });
    });
  };
  std::vector<std::pair<int, int>> in_place{{0, 0}};
  if (problem.residual) in_place.push_back({residual_at, 0});
  return device_kernel(body, in_place);
}

}  // namespace

Kernel batch_norm_forward(const BatchNormProblem& problem, KernelRequest& request) {
  return normalise("batch_norm_forward", problem, request, 1);
}
Kernel batch_norm_affine(const BatchNormProblem& problem, KernelRequest& request) {
  const char* operation = "batch_norm_affine";
  require_counts(operation, request, 5, 1);
  auto& in = request.inputs;
  const std::int64_t channels = in[1].shape[0];
  require_vector(operation, in[0], DType::f64, {2, channels});
  for (int at = 1; at < 5; ++at) require_vector(operation, in[at], DType::f32, {channels});
  require_vector(operation, request.outputs[0], DType::f32, {2 * channels});
  return device_kernel([=](const BoundOperands& b, Stream stream) {
    ForwardOperands o{};
    o.y = b.outputs[0], o.sums = b.in<double>(0), o.gamma = b.in(1), o.beta = b.in(2);
    o.running_mean = b.inout(3), o.running_var = b.inout(4), o.control = b.control();
    constexpr int kChannels = 64;  // of a block
    launch(affine, unsigned(ceil_div(channels, kChannels)), kChannels, stream, b.members, o, problem,
           int(channels));
  });
}

Kernel batch_norm_inference(const BatchNormProblem& problem, KernelRequest& request) {
  return normalise("batch_norm_inference", problem, request, 0);
}

Kernel batch_norm_backward(const BatchNormProblem& problem, KernelRequest& request) {
  const char* operation = "batch_norm_backward";
  require_batch_norm_flags(operation, problem);
  require_counts(operation, request, 6 + problem.second_input_gradient, 1);
  auto& in = request.inputs;
  const ImageExtents e = image_extents(in[0].shape);
  require_vector(operation, in[1], DType::f64, {2, e.c});
  require_vector(operation, in[2], DType::f32, {e.c});
  require_vector(operation, in[3], DType::f32, {e.c});
  require_vector(operation, in[5], DType::f64, {2, e.c});
  TensorDesc& other = in[problem.second_input_gradient ? 6 : 4];
  for (TensorDesc* desc : {&in[0], &in[4], &other, &request.outputs[0]}) {
    require_activation_layout(operation, *desc);
    require_shape(operation, "an activation", *desc, in[0].shape);
  }
  const DType type = common_dtype(operation, {&in[0], &in[4], &other, &request.outputs[0]});
  const bool masks = differentiates_again(problem);
  const ColumnGrid grid = column_grid(e, type, kThreads, kRows);
  const auto body = [=](const BoundOperands& b, Stream stream) {
    const StepControl* control = b.control();
    const BackwardOperands o{b.inputs[0],
                             b.inputs[4],
                             problem.second_input_gradient ? b.inputs[6] : nullptr,
                             b.outputs[0],
                             b.in<double>(1),
                             b.in<double>(5),
                             b.in(2),
                             b.in(3),
                             control,
                             activation_of(problem)};
    with_packing(type, {grid.columns}, [&](auto packing) {
      using P = decltype(packing);
      const auto start = [&](auto kind) {
        launch(problem.second_input_gradient ? backward<typename P::Type, P::kWidth, true, kind()>
                                             : backward<typename P::Type, P::kWidth, false, kind()>,
               grid.blocks(), kThreads, stream, b.members, o, problem, masks, grid);
      };
      masks ? with_activation(problem, start) : start(std::integral_constant<int, kNoActivation>{});
    });
  };
  std::vector<std::pair<int, int>> in_place{{0, 0}, {4, 0}};
  if (problem.second_input_gradient) in_place.push_back({6, 0});
  return device_kernel(body, in_place);
}

}  // namespace convoy::kernels::cuda
