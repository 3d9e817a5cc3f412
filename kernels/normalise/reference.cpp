// Normalises images in plain loops. On the reference backend y is row_major f32.
#include <cstring>

#include "kernels/device/blank.h"
#include "kernels/device/host_kernel.h"
#include "kernels/normalise/normalise.h"

namespace convoy::kernels::reference {

Kernel normalise_forward(const NormaliseProblem& problem, KernelRequest& request) {
  check_normalise(problem, request);
  require_layout("normalise_forward", request.inputs[0], Layout::channels_last);
  require_layout("normalise_forward", request.inputs[1], Layout::row_major);
  require_layout("normalise_forward", request.outputs[0], Layout::row_major);
  const Shape y = request.outputs[0].shape;
  const std::int64_t channels = request.inputs[0].shape[1];
  return host_kernel([=](const BoundOperands& operands) {
    const StepControl* control = operands.control();
    float* to = operands.out(0);
    for (std::int64_t n = 0; n < y[0]; ++n) {
      SampleTransform transform;
      if (n < control->valid)
        std::memcpy(&transform, operands.in<std::uint8_t>(1) + n * sizeof transform, sizeof transform);
      for (std::int64_t c = 0; c < y[1]; ++c)
        for (std::int32_t h = 0; h < y[2]; ++h)
          for (std::int32_t w = 0; w < y[3]; ++w, ++to) {
            *to = 0;
            if (c >= channels || n >= control->valid) continue;
            if (is_blank(transform, h, w, static_cast<std::int32_t>(y[3]))) continue;
            const std::uint8_t* image = operands.in<std::uint8_t>(0) + n * y[2] * y[3] * channels;
            const float product = problem.scale[c] * static_cast<float>(image[(h * y[3] + w) * channels + c]);
            *to = product + problem.shift[c];
          }
    }
  });
}

}  // namespace convoy::kernels::reference
