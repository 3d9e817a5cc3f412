#include "app/model/ops/group_norm.h"

#include <fmt/format.h>

namespace convoy::app {

Shape GroupNorm::infer(Shapes inputs) const {
  expect_inputs(inputs, 1);
  if (inputs[0].rank() != 2) expect_image(inputs[0]);
  if (groups < 1 || inputs[0][1] % groups != 0)
    throw ShapeError(fmt::format("{} groups of {} channels, expected a divisor", groups, inputs[0][1]));
  return inputs[0];
}

std::vector<ParameterSpec> GroupNorm::parameters(Shapes inputs) const {
  return {{"weight", {inputs[0][1]}, Initializer::constant(1), false},
          {"bias", {inputs[0][1]}, Initializer::constant(0), false}};
}

std::string GroupNorm::attributes() const { return fmt::format("{} groups", groups); }

}  // namespace convoy::app
