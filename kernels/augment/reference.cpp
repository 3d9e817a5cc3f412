// Augmentation, plain loops; y is row_major f32.
#include "kernels/augment/augment.h"
#include "kernels/device/host_kernel.h"

namespace convoy::kernels::reference {
namespace {

template <typename Pixel>
float value_of(const AugmentProblem& problem, const Shape& images, const Pixel* image,
               const std::int32_t* draw, std::int64_t c, std::int64_t h, std::int64_t w, std::int64_t width) {
  const std::int64_t cut_h = h - draw[kCutRow], cut_w = w - draw[kCutColumn];
  if (cut_h >= 0 && cut_h < draw[kCutSize] && cut_w >= 0 && cut_w < draw[kCutSize]) return 0;
  const std::int64_t from_h = h + draw[kCropRow];
  const std::int64_t from_w = (draw[kFlip] != 0 ? width - 1 - w : w) + draw[kCropColumn];
  if (from_h < 0 || from_h >= images[2] || from_w < 0 || from_w >= images[3]) return 0;
  const float product =
      problem.scale[c] * static_cast<float>(image[(from_h * images[3] + from_w) * images[1] + c]);
  return product + problem.shift[c];
}

}  // namespace

Kernel augment_forward(const AugmentProblem& problem, KernelRequest& request) {
  check_augment(problem, request);
  require_layout("augment_forward", request.inputs[0], Layout::channels_last);
  require_layout("augment_forward", request.inputs[1], Layout::row_major);
  require_layout("augment_forward", request.outputs[0], Layout::row_major);
  const Shape images = request.inputs[0].shape, y = request.outputs[0].shape;
  const DType stored = request.inputs[0].dtype;
  return host_kernel([=, control = request.control](const BoundOperands& operands) {
    const auto fill = [&](const auto* from) {
      float* to = operands.out(0);
      for (std::int64_t n = 0; n < y[0]; ++n) {
        const auto* draw = operands.in<std::int32_t>(1) + n * kAugmentDraws;
        const auto* image = from + draw[kImage] * (images.elements() / images[0]);
        for (std::int64_t c = 0; c < y[1]; ++c)
          for (std::int64_t h = 0; h < y[2]; ++h)
            for (std::int64_t w = 0; w < y[3]; ++w) {
              const bool real = n < control->valid && c < images[1];
              *to++ = real ? value_of(problem, images, image, draw, c, h, w, y[3]) : 0;
            }
      }
    };
    if (stored == DType::u8)
      fill(operands.in<std::uint8_t>(0));
    else
      fill(operands.in<float>(0));
  });
}

}  // namespace convoy::kernels::reference
