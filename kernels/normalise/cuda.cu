// Normalises images on the device. A thread computes whole pixels of y. If the channels of a pixel
// fill 8 or 16 bytes, the thread writes the pixel with one store.
#include "kernels/device/blank.h"
#include "kernels/device/cuda_launch.cuh"
#include "kernels/device/divider.h"
#include "kernels/normalise/normalise.h"

namespace convoy::kernels::cuda {
namespace {

// The number of pixels of a sample that a thread computes. It reads the sample's transform only
// once for all of them.
constexpr int kPixelsOfThread = 4;

struct Images {
  int channels, padded, width;  // padded: the channels of y, padding included
  std::uint32_t pixels;         // the pixels of an image
  float scale[kMostImageChannels], shift[kMostImageChannels];
  Divider columns, blocks;  // divide by the columns of an image, and by the thread blocks per image
};

// Copies only those fields of a transform that is_blank() reads.
__device__ SampleTransform blank_part(const SampleTransform& from) {
  SampleTransform part;
  part.flip = from.flip;
  part.rows.begin = from.rows.begin;
  part.rows.end = from.rows.end;
  part.columns.begin = from.columns.begin;
  part.columns.end = from.columns.end;
  for (int i = 0; i < kMostErasedRectangles; ++i) part.erased[i] = from.erased[i];
  part.ops[0].kind = from.ops[0].kind;
  return part;
}

// Writes y. kPadded is the number of y's channels if one store writes a pixel, else 0.
template <typename T, int kPadded>
__global__ void normalise(const std::uint8_t* __restrict__ images,
                          const SampleTransform* __restrict__ transforms, T* y, const StepControl* control,
                          const __grid_constant__ Images m, std::ptrdiff_t member_stride) {
  images = of_member(images, member_stride);
  transforms = of_member(transforms, member_stride);
  move_to_member(member_stride, y, control);
  const std::uint32_t sample = m.blocks(blockIdx.x), block = blockIdx.x - sample * m.blocks.divisor;
  const bool valid = static_cast<int>(sample) < control->valid;
  const SampleTransform transform = valid ? blank_part(transforms[sample]) : SampleTransform{};
  const std::int64_t first = std::int64_t{sample} * m.pixels;
  for (std::uint32_t i = block * blockDim.x + threadIdx.x; i < m.pixels; i += m.blocks.divisor * blockDim.x) {
    const std::uint32_t row = m.columns(i);
    const auto h = static_cast<std::int32_t>(row), w = static_cast<std::int32_t>(i - row * m.columns.divisor);
    const bool blank = !valid || is_blank(transform, h, w, m.width);
    const std::uint8_t* from = images + (first + i) * m.channels;
    const auto value = [&](int c) {
      if (blank || c >= m.channels) return 0.0f;
      return __fadd_rn(__fmul_rn(m.scale[c], static_cast<float>(from[c])), m.shift[c]);
    };
    if constexpr (kPadded > 0) {
      float channels[kPadded];
#pragma unroll
      for (int c = 0; c < kPadded; ++c) channels[c] = value(c);
      store_pack(y + (first + i) * kPadded, pack_of<T>(channels));
    } else {
      for (int c = 0; c < m.padded; ++c)
        store_pack(y + (first + i) * m.padded + c, pack_of<T, 1>({c < kMostImageChannels ? value(c) : 0.0f}));
    }
  }
}

template <typename T>
auto* kernel_for(int padded) {
  if constexpr (sizeof(T) == 2)
    if (padded == 8) return normalise<T, 8>;
  return padded == 4 ? normalise<T, 4> : normalise<T, 0>;
}

}  // namespace

Kernel normalise_forward(const NormaliseProblem& problem, KernelRequest& request) {
  const char* operation = "normalise_forward";
  check_normalise(problem, request);
  require_layout(operation, request.inputs[0], Layout::channels_last);
  require_layout(operation, request.inputs[1], Layout::row_major);
  require_layout(operation, request.outputs[0], Layout::channels_last);
  const Shape y = request.outputs[0].shape;
  const DType type = common_dtype(operation, {&request.outputs[0]});
  const std::int64_t pixels = y[2] * y[3], blocks = ceil_div(pixels, kThreads * kPixelsOfThread);
  require_below_2g(operation, pixels);
  require_below_2g(operation, y[0] * blocks);
  Images m{static_cast<int>(request.inputs[0].shape[1]),
           static_cast<int>(y[1]),
           static_cast<int>(y[3]),
           static_cast<std::uint32_t>(pixels),
           {},
           {},
           Divider(y[3]),
           Divider(blocks)};
  std::copy(problem.scale.begin(), problem.scale.end(), m.scale);
  std::copy(problem.shift.begin(), problem.shift.end(), m.shift);
  return device_kernel([=](const BoundOperands& b, Stream stream) {
    const StepControl* control = b.control();
    const auto run = [&](auto element) {
      using T = decltype(element);
      launch(kernel_for<T>(m.padded), static_cast<unsigned>(y[0] * blocks), kThreads, stream, b.members,
             b.in<std::uint8_t>(0), static_cast<const SampleTransform*>(b.inputs[1]), b.out<T>(0), control,
             m);
    };
    type == DType::bf16 ? run(bf16{}) : run(float{});
  });
}

}  // namespace convoy::kernels::cuda
