// Sum, plain loops.
#include "kernels/add/add.h"
#include "kernels/device/host_kernel.h"

namespace convoy::kernels::reference {

Kernel add_forward(const AddProblem&, KernelRequest& request) {
  require_counts("add_forward", request, std::max<std::size_t>(2, request.inputs.size()), 1);
  settle_row_major("add_forward", request);
  for (const TensorDesc& input : request.inputs)
    require_shape("add_forward", "an input", input, request.outputs[0].shape);
  return host_kernel(
      [count = request.outputs[0].shape.elements()](const BoundOperands& operands) {
        const int inputs = static_cast<int>(operands.inputs.size());
        for (std::int64_t i = 0; i < count; ++i) {
          double sum = 0;
          for (int k = 0; k < inputs; ++k) sum += operands.in(k)[i];
          operands.out(0)[i] = static_cast<float>(sum);
        }
      },
      {{0, 0}});
}

}  // namespace convoy::kernels::reference
