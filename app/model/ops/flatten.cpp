#include "app/model/ops/flatten.h"

namespace convoy::app {

Shape Flatten::infer(Shapes inputs) const {
  expect_inputs(inputs, 1);
  expect_image(inputs[0]);
  return {inputs[0][0], inputs[0].elements() / inputs[0][0]};
}

std::string Flatten::attributes() const { return {}; }

}  // namespace convoy::app
