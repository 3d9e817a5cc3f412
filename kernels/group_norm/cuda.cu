// Group normalisation on the device. A first launch sums over the pixels, per sample and channel. A
// second launch adds up these sums per group. A third launch computes the elements of the result.
#include "kernels/device/cuda_column_sums.cuh"
#include "kernels/device/cuda_shifted_sums.cuh"
#include "kernels/device/divider.h"
#include "kernels/group_norm/group_norm.h"

namespace convoy::kernels::cuda {
namespace {

struct Groups {
  int samples, channels, groups;
  std::int64_t pixels;
  float epsilon;
  Divider packs;     // divides by the number of packs (of V channels each) in a pixel
  Divider sample;    // divides by the number of pixels in a sample
  Divider of_group;  // divides by the number of channels in a group

  __host__ __device__ int all() const { return samples * groups; }
  __device__ double count() const {
    return static_cast<double>(pixels) * static_cast<double>(of_group.divisor);
  }
  __device__ int group_of(std::uint32_t n, int channel) const {
    return static_cast<int>(n) * groups + static_cast<int>(of_group(static_cast<std::uint32_t>(channel)));
  }
};

// A Source of column_sums() (cuda_column_sums.cuh) that adds up x and x^2. Sums of f32 are shifted
// (cuda_shifted_sums.cuh) by the first pixel of the sample.
template <typename T, int V>
struct Powers {
  static constexpr int kWidth = V, kSums = 2;
  const T* x;
  std::int64_t sample;  // the elements of a sample

  template <typename Visit>
  __device__ void each_pointer(Visit visit) {
    visit(x);
  }
  using Loaded = Pack<T, V>;
  __device__ __forceinline__ Loaded load(std::int64_t at) const { return load_pack<V>(x + at); }
  __device__ __forceinline__ void visit(const Loaded& loaded, std::int64_t n, std::int64_t, std::int64_t,
                                        int channel, float (&sums)[2][V]) const {
    float value[V], shift[V] = {};
    unpack(loaded, value);
    if constexpr (kShiftsSums<sizeof(T)>) unpack(load_pack<V>(x + n * sample + channel), shift);
#pragma unroll
    for (int i = 0; i < V; ++i) {
      value[i] -= shift[i];
      sums[0][i] += value[i];
      sums[1][i] = fmaf(value[i], value[i], sums[1][i]);
    }
  }
};

// A Source of column_sums() (cuda_column_sums.cuh) that adds up dy * xhat and dy,
// where xhat is the normalised x.
template <typename T, int V>
struct Gradients {
  static constexpr int kWidth = V, kSums = 2;
  const T *x, *dy;
  const float* moments;
  Groups g;

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
  __device__ __forceinline__ void visit(const Loaded& loaded, std::int64_t n, std::int64_t, std::int64_t,
                                        int channel, float (&sums)[2][V]) const {
    float value[V], gradient[V];
    unpack(loaded.x, value);
    unpack(loaded.dy, gradient);
#pragma unroll
    for (int i = 0; i < V; ++i) {
      const int group = g.group_of(static_cast<std::uint32_t>(n), channel + i);
      const float xhat = (value[i] - moments[group]) * moments[g.all() + group];
      sums[0][i] = fmaf(gradient[i], xhat, sums[0][i]);
      sums[1][i] += gradient[i];
    }
  }
};

// Computes the moments of all groups, one group per thread. `sums` has the sums that Powers forms,
// [2, samples, channels].
template <typename T>
__global__ void find_moments(const T* x, const double* sums, Groups g, float* moments,
                             std::ptrdiff_t member_stride) {
  move_to_member(member_stride, x, sums, moments);
  const int group = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (group >= g.all()) return;
  const std::int64_t others = std::int64_t{g.samples} * g.channels;
  const auto first = std::int64_t{group} * g.of_group.divisor;
  const std::int64_t n = group / g.groups;
  // first_pixel[n * channels + c] is channel c of the first pixel of sample n.
  const T* const first_pixel = x + n * g.channels * (g.pixels - 1);
  double sum = 0, squares = 0;
  for (std::int64_t c = first; c < first + g.of_group.divisor; ++c) {
    double of_channel = sums[c], squares_of_channel = sums[others + c];
    if constexpr (kShiftsSums<sizeof(T)>)
      remove_shift(of_channel, squares_of_channel, static_cast<double>(g.pixels), first_pixel[c]);
    sum += of_channel, squares += squares_of_channel;
  }
  const double mean = sum / g.count(), variance = fmax(squares / g.count() - mean * mean, 0.0);
  moments[group] = static_cast<float>(mean);
  moments[g.all() + group] = static_cast<float>(1 / sqrt(variance + g.epsilon));
}

// Computes the means that dx needs (one group per thread) and the gradients of gamma and beta (one
// channel per thread). `sums` has the sums of dy xhat per sample and channel, then those of dy.
// `means` gets the means of g xhat per group, then those of g, where g = gamma dy (layer_norm.h).
__global__ void find_gradients(const double* sums, const float* gamma, Groups g, float* means, float* dgamma,
                               float* dbeta, std::ptrdiff_t member_stride) {
  move_to_member(member_stride, sums, gamma, means, dgamma, dbeta);
  const int at = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const std::int64_t others = std::int64_t{g.samples} * g.channels;
  if (at < g.all()) {
    const auto first = std::int64_t{at} * g.of_group.divisor;
    double gx = 0, alone = 0;
    for (std::int64_t c = first; c < first + g.of_group.divisor; ++c) {
      gx += sums[c] * gamma[c % g.channels];
      alone += sums[others + c] * gamma[c % g.channels];
    }
    means[at] = static_cast<float>(gx / g.count());
    means[g.all() + at] = static_cast<float>(alone / g.count());
  }
  if (at >= g.channels) return;
  double with_xhat = 0, alone = 0;
#pragma unroll 8
  for (int n = 0; n < g.samples; ++n) {
    with_xhat += sums[std::int64_t{n} * g.channels + at];
    alone += sums[others + std::int64_t{n} * g.channels + at];
  }
  dgamma[at] = static_cast<float>(with_xhat);
  dbeta[at] = static_cast<float>(alone);
}

// Writes y or, with `gradient`, dx.
template <typename T, int V, bool gradient>
__global__ void apply(const T* x, const T* dy, const float* gamma, const float* beta, const float* moments,
                      const float* means, T* to, const __grid_constant__ Groups g, std::int64_t items,
                      std::ptrdiff_t member_stride) {
  move_to_member(member_stride, x, dy, gamma, beta, moments, means, to);
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t item = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; item < items;
       item += stride) {
    const std::uint32_t row = g.packs(static_cast<std::uint32_t>(item)), n = g.sample(row);
    const int channel = static_cast<int>(static_cast<std::uint32_t>(item) - row * g.packs.divisor) * V;
    float value[V], scale[V], other[V];
    unpack(load_pack<V>(x + item * V), value);
    unpack(load_pack<V>(gamma + channel), scale);
    if constexpr (gradient)
      unpack(load_pack<V>(dy + item * V), other);
    else
      unpack(load_pack<V>(beta + channel), other);
#pragma unroll
    for (int i = 0; i < V; ++i) {
      const int group = g.group_of(n, channel + i);
      const float invstd = moments[g.all() + group], xhat = (value[i] - moments[group]) * invstd;
      value[i] = gradient ? invstd * (other[i] * scale[i] - means[g.all() + group] - xhat * means[group])
                          : fmaf(xhat, scale[i], other[i]);
    }
    store_pack(to + item * V, pack_of<T>(value));
  }
}

Groups groups_of(const GroupNormProblem& problem, const ImageExtents& e, int width) {
  return {static_cast<int>(e.n), static_cast<int>(e.c), problem.groups,      e.pixels(),
          problem.epsilon,       Divider(e.c / width),  Divider(e.pixels()), Divider(e.c / problem.groups)};
}

// The workspace: sums (f64 [2, N, C]), means for backward (f32 [2, N groups]), and the partial sums
// of column_sums() (cuda_column_sums.cuh).
struct Workspace {
  double* sums;
  float *means, *partials;
};
Workspace carve(void* base, const ImageExtents& e, int groups) {
  auto* const sums = static_cast<double*>(base);
  auto* const means = reinterpret_cast<float*>(sums + 2 * e.n * e.c);
  return {sums, means, means + 2 * e.n * groups};
}
std::size_t workspace_bytes(const ImageExtents& e, int groups, const SumGrid& grid) {
  return static_cast<std::size_t>(2 * e.n * e.c) * sizeof(double) +
         static_cast<std::size_t>(2 * e.n * groups) * sizeof(float) + grid.partial_bytes(2);
}

template <typename Source>
void sum_channels(const Source& source, const SumGrid& grid, const Workspace& workspace, Stream stream,
                  MemberLayout members) {
  const SumOutputs<double, 2> sums{{workspace.sums, workspace.sums + grid.segments * grid.channels}};
  sum_columns(source, grid, workspace.partials, sums, stream, members);
}

}  // namespace

Kernel group_norm_forward(const GroupNormProblem& problem, KernelRequest& request) {
  require_group_norm_forward(problem, request);
  TensorDesc &x = request.inputs[0], &y = request.outputs[0];
  require_activation_layout("group_norm_forward", x);
  match_layout("group_norm_forward", y, x);
  const DType type = common_dtype("group_norm_forward", {&x, &y});
  require_below_2g("group_norm_forward", x.shape.elements());
  const ImageExtents e = image_extents(x.shape);
  const SumGrid grid = sum_grid(e.n, e.pixels(), e.c, type);
  const auto body = [=](const BoundOperands& b, Stream stream) {
    with_packing(type, {e.c}, [&](auto packing) {
      using P = decltype(packing);
      using T = typename P::Type;
      constexpr int V = P::kWidth;
      const Groups g = groups_of(problem, e, V);
      const Workspace workspace = carve(b.workspace, e, problem.groups);
      sum_channels(Powers<T, V>{b.in<T>(0), e.c * e.pixels()}, grid, workspace, stream, b.members);
      launch(find_moments<T>, grid_for(g.all()), kThreads, stream, b.members, b.in<T>(0), workspace.sums, g,
             b.out(1));
      const std::int64_t items = e.n * e.c * e.pixels() / V;
      launch(apply<T, V, false>, grid_for(items), kThreads, stream, b.members, b.in<T>(0), nullptr, b.in(1),
             b.in(2), b.out(1), nullptr, b.out<T>(0), g, items);
    });
  };
  return device_kernel(body, {{0, 0}}, workspace_bytes(e, problem.groups, grid));
}

Kernel group_norm_backward(const GroupNormProblem& problem, KernelRequest& request) {
  require_group_norm_backward(problem, request);
  TensorDesc &x = request.inputs[0], &dy = request.inputs[2], &dx = request.outputs[0];
  require_activation_layout("group_norm_backward", x);
  for (TensorDesc* desc : {&dy, &dx}) match_layout("group_norm_backward", *desc, x);
  const DType type = common_dtype("group_norm_backward", {&x, &dy, &dx});
  require_below_2g("group_norm_backward", x.shape.elements());
  const ImageExtents e = image_extents(x.shape);
  const SumGrid grid = sum_grid(e.n, e.pixels(), e.c, type);
  const auto body = [=](const BoundOperands& b, Stream stream) {
    with_packing(type, {e.c}, [&](auto packing) {
      using P = decltype(packing);
      using T = typename P::Type;
      constexpr int V = P::kWidth;
      const Groups g = groups_of(problem, e, V);
      const Workspace workspace = carve(b.workspace, e, problem.groups);
      sum_channels(Gradients<T, V>{b.in<T>(0), b.in<T>(2), b.in(3), g}, grid, workspace, stream, b.members);
      launch(find_gradients, grid_for(std::max(g.all(), g.channels)), kThreads, stream, b.members,
             workspace.sums, b.in(1), g, workspace.means, b.out(1), b.out(2));
      const std::int64_t items = e.n * e.c * e.pixels() / V;
      launch(apply<T, V, true>, grid_for(items), kThreads, stream, b.members, b.in<T>(0), b.in<T>(2), b.in(1),
             nullptr, b.in(3), workspace.means, b.out<T>(0), g, items);
    });
  };
  return device_kernel(body, {{0, 0}, {2, 0}}, workspace_bytes(e, problem.groups, grid));
}

}  // namespace convoy::kernels::cuda
