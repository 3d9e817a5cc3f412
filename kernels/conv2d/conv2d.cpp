// Computes the output shape of a convolution.
#include "kernels/conv2d/conv2d.h"

#include <fmt/format.h>

#include <stdexcept>

namespace convoy::kernels {

Shape conv2d_output_shape(const Conv2dProblem& problem, const Shape& x, const Shape& weights) {
  if (x.rank() != 4 || weights.rank() != 4)
    throw std::invalid_argument(fmt::format("conv2d: x is {} and weights are {}, expected four extents each",
                                            x.to_string(), weights.to_string()));
  if (x[1] != weights[1] * problem.groups || weights[0] % problem.groups != 0)
    throw std::invalid_argument(fmt::format("conv2d: x {} and weights {} do not fit {} groups", x.to_string(),
                                            weights.to_string(), problem.groups));
  Shape y{x[0], weights[0], 0, 0};
  for (int axis = 0; axis < 2; ++axis) {
    const std::int64_t reach = problem.dilation[axis] * (weights[axis + 2] - 1) + 1;
    const std::int64_t room = x[axis + 2] + 2 * problem.padding[axis] - reach;
    if (room < 0)
      throw std::invalid_argument(
          fmt::format("conv2d: a kernel that reaches {} does not fit an extent of {} "
                      "with padding {}",
                      reach, x[axis + 2], problem.padding[axis]));
    y[axis + 2] = room / problem.stride[axis] + 1;
  }
  return y;
}

bool suits_input_affine(const Conv2dProblem& problem, const Shape& weights) {
  constexpr std::array kNone{0, 0}, kOne{1, 1};
  return weights[2] == 1 && weights[3] == 1 && problem.stride == kOne && problem.padding == kNone &&
         problem.groups == 1 && problem.piece == 0 && weights[0] % 8 == 0 && weights[1] % 8 == 0;
}

bool conv2d_fuses_input_norm(Backend backend) {
  return backend == Backend::cuda && cuda::conv2d_fuses_input_norm();
}

}  // namespace convoy::kernels
