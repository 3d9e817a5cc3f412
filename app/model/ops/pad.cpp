#include "app/model/ops/pad.h"

#include <fmt/format.h>

namespace convoy::app {

Shape Pad::infer(Shapes inputs) const {
  expect_inputs(inputs, 1);
  expect_image(inputs[0]);
  try {
    return kernels::pad_output_shape(amounts, inputs[0]);
  } catch (const std::invalid_argument& error) {
    throw ShapeError(error.what());
  }
}

std::string Pad::attributes() const {
  return fmt::format("top {}, bottom {}, left {}, right {}{}", amounts.top, amounts.bottom, amounts.left,
                     amounts.right, amounts.value != 0 ? fmt::format(", value {}", amounts.value) : "");
}

}  // namespace convoy::app
