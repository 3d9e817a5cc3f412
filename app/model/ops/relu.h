// ReLU layer: y = max(x, 0).
#pragma once

#include "app/model/layer.h"
#include "kernels/relu/relu.h"

namespace convoy::app {

CONVOY_REPEATABLE_NODE(ReluForward, relu_forward, ReluProblem);
CONVOY_NODE(ReluBackward, relu_backward, ReluProblem);

struct Relu {
  static constexpr std::string_view kKind = "relu";
  using Nodes = std::tuple<ReluForward, ReluBackward>;

  Shape infer(Shapes inputs) const {
    expect_inputs(inputs, 1);
    return inputs[0];
  }
  std::vector<ParameterSpec> parameters(Shapes) const { return {}; }
  std::vector<ParameterSpec> states(Shapes) const { return {}; }
  double flops(Shapes inputs) const { return static_cast<double>(inputs[0].elements()); }
  std::string attributes() const { return {}; }
  void forward(Emitter& emitter) const;
  void backward(Emitter& emitter) const;
  void write(LayerWriter& onnx) const;
};

}  // namespace convoy::app
