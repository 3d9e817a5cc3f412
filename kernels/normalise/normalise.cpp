#include "kernels/normalise/normalise.h"

#include <fmt/format.h>

#include <stdexcept>

#include "kernels/device/host_kernel.h"

namespace convoy::kernels {

void check_normalise(const NormaliseProblem& problem, const KernelRequest& request) {
  const char* operation = "normalise_forward";
  require_counts(operation, request, 2, 1);
  const TensorDesc &images = request.inputs[0], &y = request.outputs[0];
  require_dtype(operation, "images", images, DType::u8);
  require_dtype(operation, "transforms", request.inputs[1], DType::u8);
  if (images.shape.rank() != 4 || y.shape.rank() != 4)
    throw std::invalid_argument(fmt::format("{}: images are {} and y {}, expected four extents", operation,
                                            images.shape.to_string(), y.shape.to_string()));
  const std::int64_t channels = images.shape[1];
  require_shape(operation, "images", images, {y.shape[0], channels, y.shape[2], y.shape[3]});
  require_shape(operation, "transforms", request.inputs[1], transforms_desc(y.shape[0]).shape);
  if (channels > kMostImageChannels || y.shape[1] < channels || std::ssize(problem.scale) != channels ||
      std::ssize(problem.shift) != channels)
    throw std::invalid_argument(fmt::format(
        "{}: {} channels of images, {} of y, {} scales and {} shifts, expected at most {} "
        "of images, as many scales and shifts, and no fewer of y",
        operation, channels, y.shape[1], problem.scale.size(), problem.shift.size(), kMostImageChannels));
}

}  // namespace convoy::kernels
