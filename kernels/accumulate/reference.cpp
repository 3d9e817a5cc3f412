// Adds up the gradients of a batch's parts in plain loops.
#include "kernels/accumulate/accumulate.h"
#include "kernels/device/host_kernel.h"

namespace convoy::kernels::reference {

Kernel accumulate_gradients(const AccumulateProblem&, KernelRequest& request) {
  const std::int64_t count = check_accumulate(request);
  return host_kernel([count](const BoundOperands& operands) {
    const StepControl* control = operands.control();
    for (std::int64_t i = 0; i < count; ++i) {
      const double sum = control->part > 0 ? operands.in(0)[i] : 0;
      operands.out(0)[i] = static_cast<float>(sum + double(control->share) * operands.in(1)[i]);
    }
  });
}

}  // namespace convoy::kernels::reference
