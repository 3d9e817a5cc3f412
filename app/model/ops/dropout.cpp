#include "app/model/ops/dropout.h"

#include <fmt/format.h>

namespace convoy::app {

Shape Dropout::infer(Shapes inputs) const {
  expect_inputs(inputs, 1);
  if (!(rate >= 0 && rate < 1)) throw ShapeError(fmt::format("rate {}, expected 0 <= rate < 1", rate));
  return inputs[0];
}

std::string Dropout::attributes() const {
  return fmt::format("rate {}{}", rate, whole_samples ? ", whole samples" : "");
}

}  // namespace convoy::app
