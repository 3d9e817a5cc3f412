#include "app/model/ops/add.h"

#include <fmt/format.h>

namespace convoy::app {

Shape Add::infer(Shapes inputs) const {
  if (inputs.size() < 2)
    throw ShapeError(fmt::format("adds {} tensors, expected two or more", inputs.size()));
  if (inputs.size() == 2 && is_gate(inputs[1], inputs[0])) return inputs[0];
  for (const Shape& input : inputs)
    if (input != inputs[0])
      throw ShapeError(
          fmt::format("adds {} and {}, expected equal shapes", inputs[0].to_string(), input.to_string()));
  return inputs[0];
}

}  // namespace convoy::app
