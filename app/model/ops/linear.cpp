#include "app/model/ops/linear.h"

#include <fmt/format.h>

#include <cmath>

namespace convoy::app {

namespace {
std::int64_t features(const Shape& shape) { return shape.elements() / shape[0]; }
}  // namespace

Shape Linear::infer(Shapes inputs) const {
  expect_inputs(inputs, 1);
  if (outputs < 1) throw ShapeError(fmt::format("has {} outputs, expected one or more", outputs));
  return {inputs[0][0], outputs};
}

std::vector<ParameterSpec> Linear::parameters(Shapes inputs) const {
  const Initializer init = Initializer::uniform(1.0 / std::sqrt(static_cast<double>(features(inputs[0]))));
  std::vector<ParameterSpec> specs{
      {"weight", {outputs, features(inputs[0])}, weight_initializer.value_or(init), true}};
  if (bias) specs.push_back({"bias", {outputs}, bias_initializer.value_or(init), false});
  return specs;
}

double Linear::flops(Shapes inputs) const {
  return 2.0 * static_cast<double>(inputs[0].elements()) * static_cast<double>(outputs);
}

}  // namespace convoy::app
