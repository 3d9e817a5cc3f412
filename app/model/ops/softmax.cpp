#include "app/model/ops/softmax.h"

namespace convoy::app {

Shape Softmax::infer(Shapes inputs) const {
  expect_inputs(inputs, 1);
  if (inputs[0].rank() != 2) expect_image(inputs[0]);
  return inputs[0];
}

std::string Softmax::attributes() const { return {}; }

}  // namespace convoy::app
