// ReLU layer: y = max(x, 0).
#pragma once

#include "app/graph/emitter.h"

namespace convoy::app {

struct Relu {
  static constexpr std::string_view kKind = "relu";

  Shape infer(Shapes inputs) const;
  std::vector<ParameterSpec> parameters(Shapes) const { return {}; }
  std::vector<ParameterSpec> states(Shapes) const { return {}; }
  double flops(Shapes inputs) const { return static_cast<double>(inputs[0].elements()); }
  std::string attributes() const { return {}; }
  void forward(Emitter& emitter) const;
  void backward(Emitter& emitter) const;
};

// Of a layer with a ReLU fused in: appends its backward, and gives the gradient of what it was applied to.
TensorId gradient_before_relu(Emitter& emitter);

}  // namespace convoy::app
