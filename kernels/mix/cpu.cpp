// Mixes samples on the host, one row of pixels at a time.
#include "kernels/device/host_kernel.h"
#include "kernels/device/parallel.h"
#include "kernels/mix/mix.h"

namespace convoy::kernels::cpu {
namespace {

CONVOY_VECTORISED void blend(const float* own, const float* other, float share, float* y,
                             std::int64_t count) {
  const float rest = 1 - share;
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = share * own[i] + rest * other[i];
}

}  // namespace

Kernel mix_forward(const MixProblem&, KernelRequest& request) {
  check_mix(request);
  require_dtype("mix_forward", "x", request.inputs[0], DType::f32);
  const Shape shape = request.inputs[0].shape;
  const std::int64_t lanes = channel_lanes("mix_forward", request.inputs[0]);
  const std::int64_t pitch = shape[3] * lanes, sample = buffer_elements(request.inputs[0]) / shape[0];
  const auto body = [=](const BoundOperands& operands) {
    const StepControl* control = operands.control();
    const MixParameters mix = *operands.in<MixParameters>(1);
    const float* x = operands.in(0);
    parallel_pieces(shape[0] * sample / pitch, std::max<std::int64_t>(1, kPiece / pitch),
                    [&](auto first, auto last) {
                      for (std::int64_t row = first; row < last; ++row) {
                        const auto n = static_cast<std::int32_t>(row * pitch / sample);
                        const std::int64_t inside = row * pitch - n * sample, line = row % shape[2] - mix.y;
                        float* y = operands.out(0) + row * pitch;
                        if (n >= control->valid) {
                          std::fill_n(y, pitch, 0.0f);
                          continue;
                        }
                        const float* own = x + row * pitch;
                        const float* other = x + mix_partner(n, control->valid) * sample + inside;
                        if (mix.pixel_share == 1)
                          std::copy_n(own, pitch, y);
                        else
                          blend(own, other, mix.pixel_share, y, pitch);
                        if (line >= 0 && line < mix.height)
                          std::copy_n(other + mix.x * lanes, mix.width * lanes, y + mix.x * lanes);
                      }
                    });
  };
  return host_kernel(body);
}

}  // namespace convoy::kernels::cpu
