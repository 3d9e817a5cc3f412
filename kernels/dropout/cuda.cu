// Dropout on the device. One call of the random generator gives words for four elements that are
// neighbours in row-major order (channels of a matrix, or pixels of an image).
#include "kernels/device/cuda_launch.cuh"
#include "kernels/device/divider.h"
#include "kernels/dropout/dropout.h"

namespace convoy::kernels::cuda {
namespace {

struct Mask {
  const StepControl* control;
  std::uint32_t layer;
  float rate, scale;

  __device__ std::uint64_t key() const { return dropout_key(control->seed, layer); }
  __device__ Philox4 words(std::uint64_t key, std::int64_t sample, std::int64_t group) const {
    return dropout_words(key, control->step, control->first_sample + static_cast<std::uint64_t>(sample),
                         static_cast<std::uint32_t>(group));
  }
  __device__ float apply(std::uint32_t word, float value) const {
    return uniform(word) >= rate ? value * scale : 0.0f;
  }
};

// Applies the mask to samples in row-major order. A pack is 16 bytes of elements, and `packs`
// divides by the number of packs in a sample.
template <typename T, int V>
__global__ void drop_rows(const T* x, T* y, Mask mask, Divider packs, std::int64_t items,
                          std::ptrdiff_t member_stride) {
  move_to_member(member_stride, x, y, mask.control);
  const std::uint64_t key = mask.key();
  const std::int64_t turn = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t item = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; item < items; item += turn) {
    const std::uint32_t sample = packs(static_cast<std::uint32_t>(item));
    const std::int64_t group = (item - std::int64_t{sample} * packs.divisor) * (V / 4);
    float value[V];
    unpack(load_pack<V>(x + item * V), value);
#pragma unroll
    for (int quad = 0; quad < V / 4; ++quad) {
      const Philox4 words = mask.words(key, sample, group + quad);
#pragma unroll
      for (int i = 0; i < 4; ++i) value[quad * 4 + i] = mask.apply(words.word[i], value[quad * 4 + i]);
    }
    store_pack(y + item * V, pack_of<T>(value));
  }
}

// Applies the mask to channels_last images with a multiple of four pixels. A thread computes the
// same pack of channels in four neighbouring pixels.
template <typename T, int V>
__global__ void drop_quads(const T* x, T* y, Mask mask, int channels, std::int64_t pixels, Divider packs,
                           Divider quads, std::int64_t items, std::ptrdiff_t member_stride) {
  move_to_member(member_stride, x, y, mask.control);
  const std::uint64_t key = mask.key();
  const std::int64_t turn = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t item = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; item < items; item += turn) {
    const std::uint32_t row = packs(static_cast<std::uint32_t>(item));
    const std::uint32_t sample = quads(row), quad = row - sample * quads.divisor;
    const int channel = static_cast<int>(static_cast<std::uint32_t>(item) - row * packs.divisor) * V;
    const std::int64_t first = std::int64_t{row} * 4 * channels + channel;
    Pack<T, V> packs_in[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) packs_in[k] = load_pack<V>(x + first + std::int64_t{k} * channels);
    float value[4][V];
#pragma unroll
    for (int k = 0; k < 4; ++k) unpack(packs_in[k], value[k]);
#pragma unroll
    for (int i = 0; i < V; ++i) {
      const Philox4 words = mask.words(key, sample, (channel + i) * (pixels / 4) + quad);
#pragma unroll
      for (int k = 0; k < 4; ++k) value[k][i] = mask.apply(words.word[k], value[k][i]);
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) store_pack(y + first + std::int64_t{k} * channels, pack_of<T>(value[k]));
  }
}

// Applies the mask to images that drop_quads() does not support. A thread computes one element.
template <typename T>
__global__ void drop_elements(const T* x, T* y, Mask mask, int channels, std::int64_t pixels,
                              std::int64_t elements, std::ptrdiff_t member_stride) {
  move_to_member(member_stride, x, y, mask.control);
  const std::uint64_t key = mask.key();
  const std::int64_t turn = std::int64_t{gridDim.x} * blockDim.x, sample_elements = channels * pixels;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < elements; i += turn) {
    const std::int64_t sample = i / sample_elements, rest = i % sample_elements;
    const std::int64_t index = rest % channels * pixels + rest / channels;
    const Philox4 words = mask.words(key, sample, index / 4);
    const std::uint32_t low = index % 2 ? words.word[1] : words.word[0];
    const std::uint32_t high = index % 2 ? words.word[3] : words.word[2];
    const float value = mask.apply(index % 4 < 2 ? low : high, to_float(x[i]));
    store_pack(y + i, pack_of<T, 1>({value}));
  }
}

// Keeps or drops whole samples. `packs` divides by the number of packs in a sample.
template <typename T, int V>
__global__ void drop_samples(const T* x, T* y, Mask mask, Divider packs, std::int64_t items,
                             std::ptrdiff_t member_stride) {
  move_to_member(member_stride, x, y, mask.control);
  const std::uint64_t key = mask.key();
  const std::int64_t turn = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t item = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; item < items; item += turn) {
    const std::uint32_t sample = packs(static_cast<std::uint32_t>(item));
    const Philox4 words = mask.words(key, sample, 0);
    float value[V];
    unpack(load_pack<V>(x + item * V), value);
#pragma unroll
    for (int i = 0; i < V; ++i) value[i] = mask.apply(words.word[0], value[i]);
    store_pack(y + item * V, pack_of<T>(value));
  }
}

struct Extents {
  // A row-major sample counts as one pixel, whose channels are all of the sample's elements.
  std::int64_t samples, channels, pixels;
  std::int64_t elements() const { return samples * channels * pixels; }
};

template <typename T>
void drop(const Extents& e, const Mask& mask, const BoundOperands& b, Stream stream) {
  constexpr int kV = kPackWidth<T>;
  const bool packable = e.channels % kV == 0;
  if (packable && e.pixels == 1) {
    const std::int64_t items = e.elements() / kV;
    launch(drop_rows<T, kV>, grid_for(items), kThreads, stream, b.members, b.in<T>(0), b.out<T>(0), mask,
           Divider(e.channels / kV), items);
  } else if (packable && e.pixels % 4 == 0) {
    const std::int64_t items = e.elements() / kV / 4;
    launch(drop_quads<T, kV>, grid_for(items), kThreads, stream, b.members, b.in<T>(0), b.out<T>(0), mask,
           static_cast<int>(e.channels), e.pixels, Divider(e.channels / kV), Divider(e.pixels / 4), items);
  } else {
    launch(drop_elements<T>, grid_for(e.elements()), kThreads, stream, b.members, b.in<T>(0), b.out<T>(0),
           mask, static_cast<int>(e.channels), e.pixels, e.elements());
  }
}

Kernel scale_samples(const DropoutProblem& problem, const KernelRequest& request, DType type) {
  const Shape& shape = request.inputs[0].shape;
  const std::int64_t elements = shape.elements(), sample = elements / shape[0];
  const auto body = [=](const BoundOperands& b, Stream stream) {
    const Mask mask{b.control(), problem.layer, problem.rate, 1 / (1 - problem.rate)};
    with_packing(type, {sample}, [&](auto packing) {
      using P = decltype(packing);
      using T = typename P::Type;
      const std::int64_t items = elements / P::kWidth;
      launch(drop_samples<T, P::kWidth>, grid_for(items), kThreads, stream, b.members, b.in<T>(0),
             b.out<T>(0), mask, Divider(sample / P::kWidth), items);
    });
  };
  return device_kernel(body, {{0, 0}});
}

// Makes the kernel of dropout_forward or dropout_backward; both multiply by the same mask.
Kernel masked_scale(const char* operation, const DropoutProblem& problem, KernelRequest& request) {
  require_counts(operation, request, 1, 1);
  TensorDesc& x = request.inputs[0];
  if (x.layout == Layout::any) require_activation_layout(operation, x);
  match_layout(operation, request.outputs[0], x);
  if (x.layout != Layout::row_major) require_layout(operation, x, Layout::channels_last);
  require_shape(operation, "the output", request.outputs[0], x.shape);
  const DType type = common_dtype(operation, {&x, &request.outputs[0]});
  const std::int64_t n = x.shape[0];
  const Extents e = x.layout == Layout::row_major ? Extents{n, x.shape.elements() / n, 1}
                                                  : Extents{n, x.shape[1], x.shape[2] * x.shape[3]};
  require_below_2g(operation, e.channels * e.pixels);
  require_below_2g(operation, e.elements() / kPackWidth<float>);
  if (problem.whole_samples) {
    require_below_2g(operation, x.shape.elements());
    return scale_samples(problem, request, type);
  }
  const auto body = [=](const BoundOperands& b, Stream stream) {
    const Mask mask{b.control(), problem.layer, problem.rate, 1 / (1 - problem.rate)};
    type == DType::bf16 ? drop<bf16>(e, mask, b, stream) : drop<float>(e, mask, b, stream);
  };
  return device_kernel(body, {{0, 0}});
}

}  // namespace

Kernel dropout_forward(const DropoutProblem& problem, KernelRequest& request) {
  return masked_scale("dropout_forward", problem, request);
}
Kernel dropout_backward(const DropoutProblem& problem, KernelRequest& request) {
  return masked_scale("dropout_backward", problem, request);
}

}  // namespace convoy::kernels::cuda
