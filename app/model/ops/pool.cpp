#include "app/model/ops/pool.h"

#include <fmt/format.h>

namespace convoy::app {

using kernels::PoolKind;

kernels::PoolProblem Pool::problem(const Shape& input) const {
  kernels::PoolProblem problem;
  problem.kind = kind;
  problem.kernel = window;
  if (window[0] == 0) problem.kernel = {static_cast<int>(input[2]), static_cast<int>(input[3])};
  problem.stride = stride;
  problem.padding = padding;
  problem.ceil_mode = ceil_mode;
  problem.count_include_pad = count_include_pad;
  problem.relu = relu;
  return problem;
}

Shape Pool::infer(Shapes inputs) const {
  expect_inputs(inputs, 1);
  expect_image(inputs[0]);
  const kernels::PoolProblem pool = problem(inputs[0]);
  for (std::size_t axis = 0; axis < 2; ++axis)
    if (stride[axis] < 1 || padding[axis] < 0 || 2 * padding[axis] > pool.kernel[axis])
      throw ShapeError(
          fmt::format("stride {}, padding {}, window {}: expected stride above zero and padding at most half "
                      "of the window",
                      stride[axis], padding[axis], window[axis]));
  if (inputs[0][2] + 2 * padding[0] < pool.kernel[0] || inputs[0][3] + 2 * padding[1] < pool.kernel[1])
    throw ShapeError(fmt::format("its window of {}x{} does not fit into {}", pool.kernel[0], pool.kernel[1],
                                 inputs[0].to_string()));
  return kernels::pool_output_shape(pool, inputs[0]);
}

double Pool::flops(Shapes inputs) const {
  const kernels::PoolProblem pool = problem(inputs[0]);
  return static_cast<double>(infer(inputs).elements()) * pool.kernel[0] * pool.kernel[1];
}

std::string Pool::attributes() const {
  const char* name = kind == PoolKind::max ? "max" : "average";
  if (window[0] == 0) return fmt::format("{} global", name);
  return fmt::format("{} {}x{}, stride {}{}{}{}", name, window[0], window[1], extents(stride),
                     padding[0] + padding[1] > 0 ? ", padding " + extents(padding) : "",
                     ceil_mode ? ", ceil" : "", relu ? ", relu" : "");
}

}  // namespace convoy::app
