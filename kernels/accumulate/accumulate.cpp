#include "kernels/accumulate/accumulate.h"

#include "kernels/device/host_kernel.h"

namespace convoy::kernels {

std::int64_t check_accumulate(KernelRequest& request) {
  const char* operation = "accumulate_gradients";
  require_counts(operation, request, 2, 1);
  require_row_major(operation, request);
  for (const TensorDesc* desc : {&request.inputs[0], &request.inputs[1], &request.outputs[0]}) {
    require_dtype(operation, "a buffer", *desc, DType::f32);
    require_shape(operation, "a buffer", *desc, request.inputs[0].shape);
  }
  return request.inputs[0].shape.elements();
}

}  // namespace convoy::kernels
