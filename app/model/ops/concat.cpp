#include "app/model/ops/concat.h"

#include <fmt/format.h>

namespace convoy::app {

Shape Concat::infer(Shapes inputs) const {
  if (inputs.empty()) throw ShapeError("joins nothing, expected one or more tensors");
  Shape joined = inputs[0];
  expect_image(joined);
  joined[1] = 0;
  for (const Shape& input : inputs) {
    expect_image(input);
    if (input[0] != joined[0] || input[2] != joined[2] || input[3] != joined[3])
      throw ShapeError(fmt::format("joins {} and {}, expected equal image sizes", inputs[0].to_string(),
                                   input.to_string()));
    joined[1] += input[1];
  }
  return joined;
}

}  // namespace convoy::app
