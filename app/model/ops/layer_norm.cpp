#include "app/model/ops/layer_norm.h"

namespace convoy::app {

Shape LayerNorm::infer(Shapes inputs) const {
  expect_inputs(inputs, 1);
  if (inputs[0].rank() != 2) expect_image(inputs[0]);
  return inputs[0];
}

std::vector<ParameterSpec> LayerNorm::parameters(Shapes inputs) const {
  return {{"weight", {inputs[0][1]}, Initializer::constant(1), false},
          {"bias", {inputs[0][1]}, Initializer::constant(0), false}};
}

std::string LayerNorm::attributes() const { return {}; }

}  // namespace convoy::app
