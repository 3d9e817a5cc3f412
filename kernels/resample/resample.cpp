#include "kernels/resample/resample.h"

#include <fmt/format.h>

#include <stdexcept>

#include "kernels/device/host_kernel.h"

namespace convoy::kernels {

TensorDesc transforms_desc(std::int64_t samples) {
  return {DType::u8, {samples, std::int64_t{sizeof(SampleTransform)}}, Layout::row_major, nullptr};
}

void check_resample(const ResampleProblem& problem, const KernelRequest& request) {
  const char* operation = "resample_forward";
  require_counts(operation, request, 2, 1);
  const TensorDesc &cuts = request.inputs[0], &images = request.outputs[0];
  require_dtype(operation, "cuts", cuts, DType::u8);
  require_dtype(operation, "transforms", request.inputs[1], DType::u8);
  require_dtype(operation, "images", images, DType::u8);
  if (cuts.shape.rank() != 1 || images.shape.rank() != 4)
    throw std::invalid_argument(fmt::format("{}: cuts are {} and images {}, expected one and four extents",
                                            operation, cuts.shape.to_string(), images.shape.to_string()));
  require_shape(operation, "transforms", request.inputs[1], transforms_desc(images.shape[0]).shape);
  const std::int64_t channels = images.shape[1];
  if (channels > kMostImageChannels || std::ssize(problem.fill) != channels)
    throw std::invalid_argument(fmt::format("{}: {} channels and a fill of {}, expected at most {} of both",
                                            operation, channels, problem.fill.size(), kMostImageChannels));
}

}  // namespace convoy::kernels
