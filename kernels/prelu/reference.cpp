// Applies PReLU in plain loops.
#include <vector>

#include "kernels/device/host_kernel.h"
#include "kernels/prelu/prelu.h"

namespace convoy::kernels::reference {

Kernel prelu_forward(const PreluProblem&, KernelRequest& request) {
  require_counts("prelu_forward", request, 2, 1);
  require_row_major("prelu_forward", request);
  require_shape("prelu_forward", "y", request.outputs[0], request.inputs[0].shape);
  require_slope("prelu_forward", request.inputs[1], request.inputs[0].shape);
  const ImageExtents e = image_extents(request.inputs[0].shape);
  return host_kernel(
      [=, slopes = request.inputs[1].shape[0]](const BoundOperands& operands) {
        for (std::int64_t i = 0; i < e.n * e.c * e.pixels(); ++i) {
          const float x = operands.in(0)[i], slope = operands.in(1)[i / e.pixels() % e.c % slopes];
          operands.out(0)[i] = x > 0 ? x : slope * x;
        }
      },
      {{0, 0}});
}

Kernel prelu_backward(const PreluProblem&, KernelRequest& request) {
  require_counts("prelu_backward", request, 3, 2);
  require_row_major("prelu_backward", request);
  for (const int i : {0, 2})
    require_shape("prelu_backward", "an input", request.inputs[i], request.outputs[0].shape);
  for (TensorDesc* slope : {&request.inputs[1], &request.outputs[1]})
    require_slope("prelu_backward", *slope, request.inputs[0].shape);
  require_shape("prelu_backward", "dslope", request.outputs[1], request.inputs[1].shape);
  const ImageExtents e = image_extents(request.inputs[0].shape);
  return host_kernel(
      [=, slopes = request.inputs[1].shape[0]](const BoundOperands& operands) {
        std::vector<double> dslope(slopes, 0.0);
        for (std::int64_t i = 0; i < e.n * e.c * e.pixels(); ++i) {
          const std::int64_t at = i / e.pixels() % e.c % slopes;
          const double x = operands.in(0)[i], dy = operands.in(2)[i];
          operands.out(0)[i] = static_cast<float>(x > 0 ? dy : operands.in(1)[at] * dy);
          if (!(x > 0)) dslope[at] += x * dy;
        }
        for (std::int64_t i = 0; i < slopes; ++i) operands.out(1)[i] = static_cast<float>(dslope[i]);
      },
      {{0, 0}, {2, 0}});
}

}  // namespace convoy::kernels::reference
