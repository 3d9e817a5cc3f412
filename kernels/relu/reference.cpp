// Applies the ReLU in plain loops.
#include "kernels/device/host_kernel.h"
#include "kernels/relu/relu.h"

namespace convoy::kernels::reference {

Kernel relu_forward(const ReluProblem&, KernelRequest& request) {
  require_counts("relu_forward", request, 1, 1);
  require_row_major("relu_forward", request);
  require_shape("relu_forward", "y", request.outputs[0], request.inputs[0].shape);
  return host_kernel(
      [count = request.inputs[0].shape.elements()](const BoundOperands& operands) {
        const float* x = operands.in(0);
        float* y = operands.out(0);
        for (std::int64_t i = 0; i < count; ++i) y[i] = x[i] < 0 ? 0 : x[i];
      },
      {{0, 0}});
}

Kernel relu_backward(const ReluProblem&, KernelRequest& request) {
  require_counts("relu_backward", request, 2, 1);
  require_row_major("relu_backward", request);
  require_shape("relu_backward", "dy", request.inputs[1], request.inputs[0].shape);
  require_shape("relu_backward", "dx", request.outputs[0], request.inputs[0].shape);
  return host_kernel(
      [count = request.inputs[0].shape.elements()](const BoundOperands& operands) {
        const float *y = operands.in(0), *dy = operands.in(1);
        float* dx = operands.out(0);
        for (std::int64_t i = 0; i < count; ++i) dx[i] = y[i] > 0 ? dy[i] : 0;
      },
      {{1, 0}});
}

}  // namespace convoy::kernels::reference
