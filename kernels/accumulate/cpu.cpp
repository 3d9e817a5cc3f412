// Adds up the gradients of a batch's parts on the host. Each thread adds a range of the elements.
#include "kernels/accumulate/accumulate.h"
#include "kernels/device/host_kernel.h"
#include "kernels/device/parallel.h"

namespace convoy::kernels::cpu {
namespace {

CONVOY_VECTORISED void scale(const float* gradients, float share, float* total, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) total[i] = share * gradients[i];
}

CONVOY_VECTORISED void add(const float* sum, const float* gradients, float share, float* total,
                           std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) total[i] = sum[i] + share * gradients[i];
}

}  // namespace

Kernel accumulate_gradients(const AccumulateProblem&, KernelRequest& request) {
  const std::int64_t count = check_accumulate(request);
  return host_kernel([count](const BoundOperands& operands) {
    const StepControl* control = operands.control();
    parallel_pieces(count, kPiece, [&](std::int64_t begin, std::int64_t end) {
      const float* gradients = operands.in(1) + begin;
      float* total = operands.out(0) + begin;
      if (control->part == 0)
        scale(gradients, control->share, total, end - begin);
      else
        add(operands.in(0) + begin, gradients, control->share, total, end - begin);
    });
  });
}

}  // namespace convoy::kernels::cpu
