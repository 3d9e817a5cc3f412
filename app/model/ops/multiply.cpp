#include "app/model/ops/multiply.h"

#include <fmt/format.h>

namespace convoy::app {

Shape Multiply::infer(Shapes inputs) const {
  expect_inputs(inputs, 2);
  if (inputs[0] != inputs[1] && !is_gate(inputs[1], inputs[0]))
    throw ShapeError(fmt::format("multiplies {} by {}, expected equal shapes or a factor [N, C, 1, 1]",
                                 inputs[0].to_string(), inputs[1].to_string()));
  return inputs[0];
}

}  // namespace convoy::app
