// Pads images in plain loops.
#include "kernels/device/host_kernel.h"
#include "kernels/pad/pad.h"

namespace convoy::kernels::reference {
namespace {

Kernel pad(const char* operation, const PadProblem& problem, KernelRequest& request) {
  require_counts(operation, request, 1, 1);
  require_row_major(operation, request);
  require_shape(operation, "the output", request.outputs[0],
                pad_output_shape(problem, request.inputs[0].shape));
  const ImageExtents from = image_extents(request.inputs[0].shape),
                     to = image_extents(request.outputs[0].shape);
  return host_kernel([=](const BoundOperands& b) {
    float* y = b.out(0);
    for (std::int64_t plane = 0; plane < from.n * from.c; ++plane)
      for (std::int64_t row = -problem.top; row < to.h - problem.top; ++row)
        for (std::int64_t column = -problem.left; column < to.w - problem.left; ++column) {
          const bool inside = row >= 0 && row < from.h && column >= 0 && column < from.w;
          *y++ = inside ? b.in(0)[(plane * from.h + row) * from.w + column] : problem.value;
        }
  });
}

}  // namespace

Kernel pad_forward(const PadProblem& problem, KernelRequest& request) {
  return pad("pad_forward", problem, request);
}
Kernel pad_backward(const PadProblem& problem, KernelRequest& request) {
  return pad("pad_backward", turned(problem), request);
}

}  // namespace convoy::kernels::reference
