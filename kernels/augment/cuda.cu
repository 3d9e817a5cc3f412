// Augmentation on the device: a thread a pixel of y, written by one store where its channels fill 8 or 16 bytes.
#include "kernels/augment/augment.h"
#include "kernels/device/cuda_launch.cuh"
#include "kernels/device/divider.h"

namespace convoy::kernels::cuda {
namespace {

struct Images {
  int channels, padded, height, width;  // of the stored images; padded: channels of y
  float scale[kAugmentChannels], shift[kAugmentChannels];
  Divider columns, rows;  // of y
  std::int64_t pixels;    // of y, the batch's
};

// kPadded: channels of y if they are written as one pack, else 0.
template <typename Pixel, typename T, int kPadded>
__global__ void augment(const Pixel* images, const std::int32_t* draws, T* y, const StepControl* control,
                        const __grid_constant__ Images m) {
  const std::int64_t turn = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < m.pixels; i += turn) {
    const std::uint32_t line = m.columns(static_cast<std::uint32_t>(i)), sample = m.rows(line);
    const int w = static_cast<int>(static_cast<std::uint32_t>(i) - line * m.columns.divisor);
    const int h = static_cast<int>(line - sample * m.rows.divisor);
    const std::int32_t* draw = draws + std::int64_t{sample} * kAugmentDraws;
    const int from_h = h + draw[kCropRow];
    const int from_w =
        (draw[kFlip] != 0 ? static_cast<int>(m.columns.divisor) - 1 - w : w) + draw[kCropColumn];
    const auto cut = static_cast<unsigned>(draw[kCutSize]);
    const bool blank =
        static_cast<int>(sample) >= control->valid ||
        (static_cast<unsigned>(h - draw[kCutRow]) < cut && static_cast<unsigned>(w - draw[kCutColumn]) < cut);
    const bool inside = from_h >= 0 && from_h < m.height && from_w >= 0 && from_w < m.width;
    const Pixel* from =
        images + ((std::int64_t{draw[kImage]} * m.height + from_h) * m.width + from_w) * m.channels;
    const auto value = [&](int c) {
      if (blank || !inside || c >= m.channels) return 0.0f;
      return __fadd_rn(__fmul_rn(m.scale[c], static_cast<float>(from[c])), m.shift[c]);
    };
    if constexpr (kPadded > 0) {
      float channels[kPadded];
#pragma unroll
      for (int c = 0; c < kPadded; ++c) channels[c] = value(c);
      store_pack(y + i * kPadded, pack_of<T>(channels));
    } else {
      for (int c = 0; c < m.padded; ++c)
        store_pack(y + i * m.padded + c, pack_of<T, 1>({c < kAugmentChannels ? value(c) : 0.0f}));
    }
  }
}

template <typename Pixel, typename T>
auto* kernel_for(int padded) {
  if constexpr (sizeof(T) == 2)
    if (padded == 8) return augment<Pixel, T, 8>;
  return padded == 4 ? augment<Pixel, T, 4> : augment<Pixel, T, 0>;
}

}  // namespace

Kernel augment_forward(const AugmentProblem& problem, KernelRequest& request) {
  const char* operation = "augment_forward";
  check_augment(problem, request);
  require_layout(operation, request.inputs[0], Layout::channels_last);
  require_layout(operation, request.inputs[1], Layout::row_major);
  require_layout(operation, request.outputs[0], Layout::channels_last);
  const Shape images = request.inputs[0].shape, y = request.outputs[0].shape;
  const DType type = common_dtype(operation, {&request.outputs[0]}), stored = request.inputs[0].dtype;
  Images m{static_cast<int>(images[1]),
           static_cast<int>(y[1]),
           static_cast<int>(images[2]),
           static_cast<int>(images[3]),
           {},
           {},
           Divider(y[3]),
           Divider(y[2]),
           y[0] * y[2] * y[3]};
  require_below_2g(operation, m.pixels);
  std::copy(problem.scale.begin(), problem.scale.end(), m.scale);
  std::copy(problem.shift.begin(), problem.shift.end(), m.shift);
  return device_kernel([=, control = request.control](const BoundOperands& b, Stream stream) {
    const auto run = [&](auto pixel, auto element) {
      using P = decltype(pixel);
      using T = decltype(element);
      launch(kernel_for<P, T>(m.padded), resident_grid(m.pixels), kThreads, stream, b.in<P>(0),
             b.in<std::int32_t>(1), b.out<T>(0), control, m);
    };
    if (stored == DType::u8)
      type == DType::bf16 ? run(std::uint8_t{}, bf16{}) : run(std::uint8_t{}, float{});
    else
      type == DType::bf16 ? run(float{}, bf16{}) : run(float{}, float{});
  });
}

}  // namespace convoy::kernels::cuda
