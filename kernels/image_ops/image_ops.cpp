#include "kernels/image_ops/image_ops.h"

#include <fmt/format.h>

#include <stdexcept>

#include "kernels/device/host_kernel.h"
#include "kernels/device/image_ops.h"

namespace convoy::kernels {

void check_image_ops(const ImageOpsProblem& problem, KernelRequest& request) {
  const char* operation = "image_ops_forward";
  require_counts(operation, request, 2, 1);
  const Shape images = request.inputs[0].shape;
  if (images.rank() != 4)
    throw std::invalid_argument(
        fmt::format("{}: images are {}, expected four extents", operation, images.to_string()));
  check_image_op_shape(operation, images[2], images[3], images[1]);
  if (problem.most < 1 || problem.most > kMostImageOps)
    throw std::invalid_argument(
        fmt::format("{}: at most {} operations, expected 1 to {}", operation, problem.most, kMostImageOps));
  require_dtype(operation, "images", request.inputs[0], DType::u8);
  require_dtype(operation, "transforms", request.inputs[1], DType::u8);
  require_dtype(operation, "y", request.outputs[0], DType::u8);
  require_shape(operation, "transforms", request.inputs[1], {images[0], sizeof(SampleTransform)});
  require_shape(operation, "y", request.outputs[0], images);
  require_layout(operation, request.inputs[0], Layout::channels_last);
  require_layout(operation, request.inputs[1], Layout::row_major);
  require_layout(operation, request.outputs[0], Layout::channels_last);
}

}  // namespace convoy::kernels
