// Tells how many buffers of state each optimizer needs, and checks operands.
#include "kernels/optimizer/optimizer.h"

#include "kernels/device/host_kernel.h"

namespace convoy::kernels {

int optimizer_states(const OptimizerProblem& problem) {
  switch (problem.kind) {
    case OptimizerKind::sgd:
      return problem.velocity ? 1 : 0;
    case OptimizerKind::lars:
      return 1;
    case OptimizerKind::adamw:
      return 2;
  }
  return 0;
}

std::int64_t check_moving_average(KernelRequest& request) {
  const char* operation = "moving_average";
  require_counts(operation, request, 2, 0);
  require_row_major(operation, request);
  for (const TensorDesc& input : request.inputs) {
    require_dtype(operation, "a buffer", input, DType::f32);
    require_shape(operation, "a buffer", input, request.inputs[0].shape);
  }
  return request.inputs[0].shape.elements();
}

void check_clip_scale(KernelRequest& request) {
  const char* operation = "clip_scale";
  require_counts(operation, request, 1, 1);
  require_row_major(operation, request);
  require_shape(operation, "the sum of squares", request.inputs[0], {1});
  require_dtype(operation, "the sum of squares", request.inputs[0], DType::f64);
  require_shape(operation, "the scale", request.outputs[0], {1});
  require_dtype(operation, "the scale", request.outputs[0], DType::f32);
}

}  // namespace convoy::kernels
