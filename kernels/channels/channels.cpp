#include "kernels/channels/channels.h"

#include <fmt/format.h>

#include <stdexcept>

#include "kernels/device/host_kernel.h"

namespace convoy::kernels {

ChannelMap map_of_slice(const char* operation, bool backward, const SliceProblem& problem,
                        const KernelRequest& request) {
  require_counts(operation, request, 1, 1);
  const Shape &from = request.inputs[0].shape, &to = request.outputs[0].shape;
  const Shape &whole = backward ? to : from, &part = backward ? from : to;
  Shape expected = whole;
  expected[1] = part[1];
  require_shape(operation, "the slice", backward ? request.inputs[0] : request.outputs[0], expected);
  const std::int64_t end = problem.begin + part[1];
  if (problem.begin < 0 || end > whole[1])
    throw std::invalid_argument(fmt::format("{}: channels {} to {}, expected some of the {}", operation,
                                            problem.begin, end, whole[1]));
  if (backward) return {part[1], whole[1], problem.begin, end, -problem.begin, 1};
  return {whole[1], part[1], 0, part[1], problem.begin, 1};
}

ChannelMap map_of_shuffle(const ShuffleProblem& problem, const KernelRequest& request) {
  const char* operation = "channel_shuffle";
  require_counts(operation, request, 1, 1);
  const Shape& x = request.inputs[0].shape;
  require_shape(operation, "y", request.outputs[0], x);
  const std::int64_t channels = image_extents(x).c;
  if (problem.groups < 1 || channels % problem.groups != 0)
    throw std::invalid_argument(fmt::format("{}: {} groups, expected a divisor of the {} channels", operation,
                                            problem.groups, channels));
  return {channels, channels, 0, channels, 0, problem.groups};
}

}  // namespace convoy::kernels
