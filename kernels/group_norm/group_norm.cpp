#include "kernels/group_norm/group_norm.h"

#include <fmt/format.h>

#include <stdexcept>

#include "kernels/device/host_kernel.h"

namespace convoy::kernels {
namespace {

void require_vector(const char* operation, TensorDesc& desc, const Shape& shape) {
  require_layout(operation, desc, Layout::row_major);
  require_dtype(operation, "gamma, beta or moments", desc, DType::f32);
  require_shape(operation, "gamma, beta or moments", desc, shape);
}

void require_groups(const char* operation, const GroupNormProblem& problem, const ImageExtents& e) {
  if (problem.groups < 1 || e.c % problem.groups != 0)
    throw std::invalid_argument(
        fmt::format("{}: {} groups, expected a divisor of the {} channels", operation, problem.groups, e.c));
}

}  // namespace

void require_group_norm_forward(const GroupNormProblem& problem, KernelRequest& request) {
  const char* operation = "group_norm_forward";
  require_counts(operation, request, 3, 2);
  const ImageExtents e = image_extents(request.inputs[0].shape);
  require_groups(operation, problem, e);
  require_shape(operation, "y", request.outputs[0], request.inputs[0].shape);
  for (const int i : {1, 2}) require_vector(operation, request.inputs[i], {e.c});
  require_vector(operation, request.outputs[1], {2 * e.n * problem.groups});
}

void require_group_norm_backward(const GroupNormProblem& problem, KernelRequest& request) {
  const char* operation = "group_norm_backward";
  require_counts(operation, request, 4, 3);
  const Shape& x = request.inputs[0].shape;
  const ImageExtents e = image_extents(x);
  require_groups(operation, problem, e);
  require_shape(operation, "dy", request.inputs[2], x);
  require_shape(operation, "dx", request.outputs[0], x);
  require_vector(operation, request.inputs[1], {e.c});
  require_vector(operation, request.inputs[3], {2 * e.n * problem.groups});
  for (const int i : {1, 2}) require_vector(operation, request.outputs[i], {e.c});
}

}  // namespace convoy::kernels
