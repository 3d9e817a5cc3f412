// Computes sampled elements of convolutions in double precision, from the definition.
#include "kernels/conv2d/bench/oracle.h"
#include "kernels/device/cuda_elements.cuh"
#include "kernels/device/cuda_error.h"

namespace convoy::kernels::conv {
namespace {

struct Index {
  std::int64_t n, h, w, c;
};
__device__ Index split(std::int64_t index, int height, int width, int channels) {
  return {index / channels / width / height, index / channels / width % height, index / channels % width,
          index % channels};
}

// Returns product number `i` of the products that add up to an output element. Products with
// padding are 0.
template <typename T>
__device__ double product(const Task& task, const Buffers& b, InputAffine limits, std::int64_t element,
                          std::int64_t i) {
  const Geometry& g = task.geometry;
  const int c_group = g.c / g.groups, k_group = g.k / g.groups;
  std::int64_t n, k, p, q, r, s, c, h, w;  // channel c counts from the group's first channel
  const auto into_x = [&](std::int64_t at, std::int64_t tap, int axis) {
    return at * g.stride[axis] - g.padding[axis] + tap * g.dilation[axis];
  };
  if (task.direction == Direction::forward) {
    const Index y = split(element, g.p, g.q, g.k);
    n = y.n, p = y.h, q = y.w, k = y.c;
    c = i % c_group, s = i / c_group % g.s, r = i / c_group / g.s;
    h = into_x(p, r, 0), w = into_x(q, s, 1);
  } else if (task.direction == Direction::backward_data) {
    const Index x = split(element, g.h, g.w, g.c);
    n = x.n, h = x.h, w = x.w, c = x.c % c_group;
    k = x.c / c_group * k_group + i % k_group;
    s = i / k_group % g.s, r = i / k_group / g.s;
    const std::int64_t up = h + g.padding[0] - r * g.dilation[0], left = w + g.padding[1] - s * g.dilation[1];
    if (up < 0 || left < 0 || up % g.stride[0] != 0 || left % g.stride[1] != 0) return 0;
    p = up / g.stride[0], q = left / g.stride[1];
    if (p >= g.p || q >= g.q) return 0;
  } else {
    const Index filter = split(element, g.r, g.s, c_group);
    k = filter.n, r = filter.h, s = filter.w, c = filter.c;
    n = i / g.q / g.p, p = i / g.q % g.p, q = i % g.q;
    h = into_x(p, r, 0), w = into_x(q, s, 1);
  }
  if (h < 0 || w < 0 || h >= g.h || w >= g.w) return 0;
  const std::int64_t channel = k / k_group * c_group + c;
  const std::int64_t x_at = ((n * g.h + h) * g.w + w) * g.c + channel,
                     y_at = ((n * g.p + p) * g.q + q) * g.k + k,
                     filter_at = ((k * g.r + r) * g.s + s) * c_group + c;
  const auto load = [](const void* from, std::int64_t at) {
    return double(cuda::to_float(static_cast<const T*>(from)[at]));
  };
  const auto load_x = [&]() -> double {
    const auto x = static_cast<float>(load(b.images, x_at));
    if (b.affine == nullptr) return x;
    const float value = fmaf(x, b.affine[2 * channel], b.affine[2 * channel + 1]);
    return cuda::to_float(T(fminf(fmaxf(value, limits.least), limits.most)));
  };
  if (task.direction == Direction::forward) return load_x() * load(b.weights, filter_at);
  if (task.direction == Direction::backward_data) return load(b.images, y_at) * load(b.weights, filter_at);
  return load_x() * load(b.dy, y_at);
}

// A block computes the expected value of one sampled element.
template <typename T>
__global__ void evaluate(const __grid_constant__ Task task, Buffers b, InputAffine limits, Sample* samples) {
  Sample& sample = samples[blockIdx.x];
  const Geometry& g = task.geometry;
  const std::int64_t taps = std::int64_t{g.r} * g.s;
  const std::int64_t products = task.direction == Direction::forward         ? taps * (g.c / g.groups)
                                : task.direction == Direction::backward_data ? taps * (g.k / g.groups)
                                                                             : std::int64_t{g.n} * g.p * g.q;
  double sum = 0, magnitude = 0;
  for (std::int64_t i = threadIdx.x; i < products; i += blockDim.x) {
    const double value = product<T>(task, b, limits, sample.index, i);
    sum += value;
    magnitude += fabs(value);
  }
  __shared__ double shared[2][128];
  shared[0][threadIdx.x] = sum;
  shared[1][threadIdx.x] = magnitude;
  for (int half = 64; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half)
      for (auto& values : shared) values[threadIdx.x] += values[threadIdx.x + half];
  }
  if (threadIdx.x != 0) return;
  double expected = shared[0][0];
  const bool forward = task.direction == Direction::forward,
             weights = task.direction == Direction::backward_weights;
  if (forward && task.bias) expected += b.bias[sample.index % g.k];
  if (forward && task.relu) expected = fmax(expected, 0.0);
  const DType type = sizeof(T) == 4 ? DType::f32 : DType::bf16;
  const std::int64_t i = sample.index;
  // One byte of the mask covers the kPack elements in 16 bytes of dx, with one bit per element.
  constexpr int kPack = 16 / sizeof(T);
  if (task.input_norm) {
    if (type == DType::bf16)
      // The kernel rounds dx to bf16 before it adds dy2. The error is up to 2^-9 |dx|. Adding 2^12
      // |dx| to the magnitude allows for it, because bounds_of() allows 8 * 2^-24 of the magnitude.
      shared[1][0] += ldexp(fabs(expected), 12);
    expected += cuda::load_element(type, b.norm.dy2, i);
  }
  const bool masked = (task.input_relu && !(cuda::load_element(type, b.x, i) > 0)) ||
                      (task.input_norm && (b.norm.mask[i / kPack] >> (i % kPack) & 1) == 0);
  sample.expected = masked ? 0 : expected;
  sample.magnitude = masked ? 0 : shared[1][0];
  sample.found = cuda::load_element(weights ? DType::f32 : type, b.out, sample.index);
}

}  // namespace

void evaluate_samples(const Task& task, const Buffers& buffers, Sample* samples, std::int64_t count,
                      cudaStream_t stream) {
  const InputAffine limits = task.input_affine.value_or(InputAffine{});
  if (task.type() == DType::bf16)
    evaluate<cuda::bf16><<<unsigned(count), 128, 0, stream>>>(task, buffers, limits, samples);
  else
    evaluate<float><<<unsigned(count), 128, 0, stream>>>(task, buffers, limits, samples);
  CONVOY_CUDA(cudaGetLastError());
}

}  // namespace convoy::kernels::conv
