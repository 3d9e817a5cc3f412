// Mixes samples in plain loops.
#include "kernels/device/host_kernel.h"
#include "kernels/mix/mix.h"

namespace convoy::kernels::reference {

Kernel mix_forward(const MixProblem&, KernelRequest& request) {
  require_row_major("mix_forward", request);
  check_mix(request);
  const Shape shape = request.inputs[0].shape;
  return host_kernel([=](const BoundOperands& operands) {
    const StepControl* control = operands.control();
    const MixParameters mix = *operands.in<MixParameters>(1);
    const std::int64_t sample = shape.elements() / shape[0];
    float* y = operands.out(0);
    for (std::int32_t n = 0; n < shape[0]; ++n) {
      const float* own = operands.in(0) + n * sample;
      const float* other = operands.in(0) + mix_partner(n, control->valid) * sample;
      for (std::int64_t i = 0; i < sample; ++i) {
        const std::int64_t row = i / shape[3] % shape[2] - mix.y, column = i % shape[3] - mix.x;
        const bool cut = row >= 0 && row < mix.height && column >= 0 && column < mix.width;
        const float share = cut ? 0 : mix.pixel_share;
        *y++ = n >= control->valid ? 0
               : share == 1        ? own[i]
               : share == 0        ? other[i]
                                   : share * own[i] + (1 - share) * other[i];
      }
    }
  });
}

}  // namespace convoy::kernels::reference
