// Parametric ReLU layer (He et al. 2015): y = x > 0 ? x : weight * x. There is one weight per
// channel, or one weight for all channels.
#pragma once

#include "app/model/layer.h"
#include "kernels/prelu/prelu.h"

namespace convoy::app {

CONVOY_REPEATABLE_NODE(PreluForward, prelu_forward, PreluProblem);
CONVOY_NODE(PreluBackward, prelu_backward, PreluProblem);

struct Prelu {
  static constexpr std::string_view kKind = "prelu";
  using Nodes = std::tuple<PreluForward, PreluBackward>;
  bool per_channel = false;
  double initial_slope = 0.25;

  Shape infer(Shapes inputs) const {
    expect_inputs(inputs, 1);
    return inputs[0];
  }
  std::vector<ParameterSpec> parameters(Shapes inputs) const {
    return {{"weight", {per_channel ? inputs[0][1] : 1}, Initializer::constant(initial_slope), false}};
  }
  std::vector<ParameterSpec> states(Shapes) const { return {}; }
  double flops(Shapes inputs) const { return static_cast<double>(inputs[0].elements()); }
  std::string attributes() const { return per_channel ? "a weight for each channel" : ""; }
  void forward(Emitter& emitter) const;
  void backward(Emitter& emitter) const;
  void write(LayerWriter& onnx) const;
};

}  // namespace convoy::app
