// The direct engine (engines.h): a thread computes one element of the result in plain loops. It
// serves grouped convolutions that no other engine supports. Sums are fp32, in a fixed order.
#include "kernels/conv2d/engines.h"
#include "kernels/device/cuda_launch.cuh"

namespace convoy::kernels::conv {
namespace {

using cuda::to_float;

struct Direct {
  Geometry g;
  int c_group, k_group;
  std::int64_t y_pixels;
  bool relu;
};

__device__ std::int64_t x_index(const Geometry& g, int n, int h, int w, int c) {
  return ((std::int64_t{n} * g.h + h) * g.w + w) * g.c + c;
}
__device__ std::int64_t y_index(const Geometry& g, int n, int p, int q, int k) {
  return ((std::int64_t{n} * g.p + p) * g.q + q) * g.k + k;
}
__device__ std::int64_t filter_index(const Direct& d, int k, int r, int s, int c) {
  return ((std::int64_t{k} * d.g.r + r) * d.g.s + s) * d.c_group + c;
}
template <typename T>
__device__ void put(T* to, float value) {
  const float one[1] = {value};
  cuda::store_pack(to, cuda::pack_of<T>(one));
}

template <typename T>
__global__ void forward(const __grid_constant__ Direct d, const T* x, const T* weights, const float* bias,
                        T* y, std::int64_t elements, std::ptrdiff_t member_stride) {
  cuda::move_to_member(member_stride, x, weights, bias, y);
  const Geometry& g = d.g;
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < elements; i += stride) {
    const int k = int(i % g.k), q = int(i / g.k % g.q), p = int(i / g.k / g.q % g.p),
              n = int(i / g.k / g.q / g.p);
    const int first = k / d.k_group * d.c_group;
    float sum = 0;
    for (int r = 0; r < g.r; ++r)
      for (int s = 0; s < g.s; ++s) {
        const int h = p * g.stride[0] - g.padding[0] + r * g.dilation[0];
        const int w = q * g.stride[1] - g.padding[1] + s * g.dilation[1];
        if (h < 0 || h >= g.h || w < 0 || w >= g.w) continue;
        for (int c = 0; c < d.c_group; ++c)
          sum = fmaf(to_float(x[x_index(g, n, h, w, first + c)]),
                     to_float(weights[filter_index(d, k, r, s, c)]), sum);
      }
    if (bias != nullptr) sum += bias[k];
    put(y + i, d.relu ? cuda::rectified(sum) : sum);
  }
}

template <typename T>
__global__ void backward_data(const __grid_constant__ Direct d, const T* dy, const T* weights, T* dx,
                              std::int64_t elements, std::ptrdiff_t member_stride) {
  cuda::move_to_member(member_stride, dy, weights, dx);
  const Geometry& g = d.g;
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < elements; i += stride) {
    const int c = int(i % g.c), w = int(i / g.c % g.w), h = int(i / g.c / g.w % g.h),
              n = int(i / g.c / g.w / g.h);
    const int group = c / d.c_group, first = group * d.k_group;
    float sum = 0;
    for (int r = 0; r < g.r; ++r)
      for (int s = 0; s < g.s; ++s) {
        const int up = h + g.padding[0] - r * g.dilation[0], left = w + g.padding[1] - s * g.dilation[1];
        if (up < 0 || left < 0 || up % g.stride[0] != 0 || left % g.stride[1] != 0) continue;
        const int p = up / g.stride[0], q = left / g.stride[1];
        if (p >= g.p || q >= g.q) continue;
        for (int k = first; k < first + d.k_group; ++k)
          sum = fmaf(to_float(dy[y_index(g, n, p, q, k)]),
                     to_float(weights[filter_index(d, k, r, s, c - group * d.c_group)]), sum);
      }
    put(dx + i, sum);
  }
}

// Computes the gradient of the filters. A block of 32 x 32 threads computes one tap and one channel
// of 32 filters. The 32 threads of a filter divide the pixels among themselves.
template <typename T>
__global__ void __launch_bounds__(1024)
    backward_weights(const __grid_constant__ Direct d, const T* x, const T* dy, float* dweights,
                     std::ptrdiff_t member_stride) {
  cuda::move_to_member(member_stride, x, dy, dweights);
  __shared__ float shared[32][33];
  const Geometry& g = d.g;
  const int lane = threadIdx.x % 32, slice = threadIdx.x / 32;
  const int k = int(blockIdx.x) * 32 + lane, tap = int(blockIdx.y) / d.c_group,
            c = int(blockIdx.y) - tap * d.c_group;
  const int r = tap / g.s, s = tap - r * g.s;
  const int channel = k / d.k_group * d.c_group + c;
  float sum = 0;
  if (k < g.k)
    for (std::int64_t pixel = slice; pixel < d.y_pixels; pixel += 32) {
      const int q = int(pixel % g.q), p = int(pixel / g.q % g.p), n = int(pixel / g.q / g.p);
      const int h = p * g.stride[0] - g.padding[0] + r * g.dilation[0];
      const int w = q * g.stride[1] - g.padding[1] + s * g.dilation[1];
      if (h < 0 || h >= g.h || w < 0 || w >= g.w) continue;
      sum = fmaf(to_float(x[x_index(g, n, h, w, channel)]), to_float(dy[pixel * g.k + k]), sum);
    }
  shared[slice][lane] = sum;
  __syncthreads();
  if (slice != 0 || k >= g.k) return;
  for (int other = 1; other < 32; ++other) sum += shared[other][lane];
  dweights[filter_index(d, k, r, s, c)] = sum;
}

template <typename T>
void start(const Task& task, const Buffers& b, Stream stream) {
  const Geometry& g = task.geometry;
  const Direct d{g, g.c / g.groups, g.k / g.groups, g.y_pixels(), task.relu};
  const auto* images = static_cast<const T*>(b.images);
  const auto* weights = static_cast<const T*>(b.weights);
  const std::int64_t in = g.x_pixels() * g.c, out = g.y_pixels() * g.k;
  if (task.direction == Direction::forward)
    cuda::launch(forward<T>, cuda::grid_for(out), cuda::kThreads, stream, b.members, d, images, weights,
                 b.bias, static_cast<T*>(b.out), out);
  else if (task.direction == Direction::backward_data)
    cuda::launch(backward_data<T>, cuda::grid_for(in), cuda::kThreads, stream, b.members, d, images, weights,
                 static_cast<T*>(b.out), in);
  else
    cuda::launch(backward_weights<T>,
                 dim3(unsigned(cuda::ceil_div(g.k, 32)), unsigned(g.taps() * (g.c / g.groups))), 1024, stream,
                 b.members, d, images, static_cast<const T*>(b.dy), static_cast<float*>(b.out));
}

bool supports_direct(const Task& task) {
  return task.geometry.taps() * (task.geometry.c / task.geometry.groups) < 65536;
}
std::vector<Plan> direct_candidates(const Task&) { return {{Engine::direct, {}, 0}}; }
Launch bind_direct(const Task& task, const Plan&, const Buffers& buffers) {
  return [=](Stream stream) {
    (task.type() == DType::bf16 ? start<cuda::bf16> : start<float>)(task, buffers, stream);
  };
}

}  // namespace

const EngineEntry& direct_engine() {
  static const EngineEntry entry{supports_direct, direct_candidates, bind_direct};
  return entry;
}

}  // namespace convoy::kernels::conv
