#include "app/model/ops/activation.h"

#include <fmt/format.h>

namespace convoy::app {

using kernels::ActivationKind;

Shape Activation::infer(Shapes inputs) const {
  expect_inputs(inputs, 1);
  try {
    kernels::require_activation("activation", function);
  } catch (const std::invalid_argument& error) {
    throw ShapeError(error.what());
  }
  return inputs[0];
}

std::string Activation::attributes() const {
  const std::string name = kernels::name_of(function.kind);
  if (function.kind == ActivationKind::clip)
    return fmt::format("{} {} to {}", name, function.min, function.max);
  if (function.kind == ActivationKind::leaky_relu) return fmt::format("{} {}", name, function.slope);
  if (function.kind == ActivationKind::affine)
    return fmt::format("{} {} x + {}", name, function.slope, function.offset);
  return name;
}

}  // namespace convoy::app
