#include "kernels/augment/augment.h"

#include <fmt/format.h>

#include <stdexcept>

#include "kernels/device/host_kernel.h"

namespace convoy::kernels {

void check_augment(const AugmentProblem& problem, const KernelRequest& request) {
  const char* operation = "augment_forward";
  require_counts(operation, request, 2, 1);
  require_control(operation, request);
  const TensorDesc &images = request.inputs[0], &y = request.outputs[0];
  if (images.dtype != DType::f32) require_dtype(operation, "images", images, DType::u8);
  require_dtype(operation, "draws", request.inputs[1], DType::i32);
  if (images.shape.rank() != 4 || y.shape.rank() != 4)
    throw std::invalid_argument(fmt::format("{}: images are {} and y {}, expected four extents", operation,
                                            images.shape.to_string(), y.shape.to_string()));
  const std::int64_t channels = images.shape[1];
  require_shape(operation, "draws", request.inputs[1], {y.shape[0], kAugmentDraws});
  if (channels > kAugmentChannels || y.shape[1] < channels || std::ssize(problem.scale) != channels ||
      std::ssize(problem.shift) != channels)
    throw std::invalid_argument(fmt::format(
        "{}: {} channels of images, {} of y, {} scales and {} shifts, expected at most {} "
        "of images, as many scales and shifts, and no fewer of y",
        operation, channels, y.shape[1], problem.scale.size(), problem.shift.size(), kAugmentChannels));
}

}  // namespace convoy::kernels
