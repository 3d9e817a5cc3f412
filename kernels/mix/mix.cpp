#include "kernels/mix/mix.h"

#include <fmt/format.h>

#include <stdexcept>

#include "kernels/device/host_kernel.h"

namespace convoy::kernels {

void check_mix(KernelRequest& request) {
  const char* operation = "mix_forward";
  require_counts(operation, request, 2, 1);
  const TensorDesc& x = request.inputs[0];
  if (x.shape.rank() != 4)
    throw std::invalid_argument(
        fmt::format("{}: x is {}, expected four extents", operation, x.shape.to_string()));
  require_dtype(operation, "mix", request.inputs[1], DType::i32);
  require_shape(operation, "mix", request.inputs[1], {kMixWords});
  require_shape(operation, "y", request.outputs[0], x.shape);
  require_dtype(operation, "y", request.outputs[0], x.dtype);
  require_layout(operation, request.inputs[1], Layout::row_major);
  match_layout(operation, request.outputs[0], x);
}

}  // namespace convoy::kernels
