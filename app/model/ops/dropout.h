// Dropout layer. In training each element becomes zero with probability `rate`, and the others are
// multiplied by 1 / (1 - rate).
#pragma once

#include "app/model/layer.h"
#include "kernels/dropout/dropout.h"

namespace convoy::app {

CONVOY_REPEATABLE_NODE(DropoutForward, dropout_forward, DropoutProblem);
CONVOY_NODE(DropoutBackward, dropout_backward, DropoutProblem);

struct Dropout {
  static constexpr std::string_view kKind = "dropout";
  using Nodes = std::tuple<DropoutForward, DropoutBackward>;
  float rate = 0.5f;
  // Whether a sample is dropped as a whole, so that all its elements are kept or become zero
  // together. This is stochastic depth (Huang et al. 2016).
  bool whole_samples = false;

  Shape infer(Shapes inputs) const;
  std::vector<ParameterSpec> parameters(Shapes) const { return {}; }
  std::vector<ParameterSpec> states(Shapes) const { return {}; }
  double flops(Shapes inputs) const { return static_cast<double>(inputs[0].elements()); }
  std::string attributes() const;
  void forward(Emitter& emitter) const;
  void backward(Emitter& emitter) const;
  void write(LayerWriter& onnx) const;
};

}  // namespace convoy::app
