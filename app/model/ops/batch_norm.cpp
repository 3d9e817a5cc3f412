#include "app/model/ops/batch_norm.h"

#include <fmt/format.h>

namespace convoy::app {

Shape BatchNorm::infer(Shapes inputs) const {
  if (inputs.empty() || inputs.size() > 2)
    throw ShapeError(fmt::format("reads {} tensors, expected one, or two with a residual", inputs.size()));
  expect_image(inputs[0]);
  if (inputs.size() == 2 && inputs[1] != inputs[0])
    throw ShapeError(
        fmt::format("adds {} to {}, expected equal shapes", inputs[1].to_string(), inputs[0].to_string()));
  return inputs[0];
}

std::vector<ParameterSpec> BatchNorm::parameters(Shapes inputs) const {
  return {{"weight", {inputs[0][1]}, Initializer::constant(initial_scale), false},
          {"bias", {inputs[0][1]}, Initializer::constant(0), false}};
}

std::vector<ParameterSpec> BatchNorm::states(Shapes inputs) const {
  return {{"running_mean", {inputs[0][1]}, Initializer::constant(0), false},
          {"running_var", {inputs[0][1]}, Initializer::constant(1), false}};
}

std::string BatchNorm::attributes() const {
  if (activation) return kernels::name_of(activation->kind);
  return relu ? "relu" : "";
}

}  // namespace convoy::app
