// Elementwise activation layer, y = f(x), for all but the ReLU (relu.h). It keeps the shape.
#pragma once

#include "app/model/layer.h"
#include "kernels/activation/activation.h"

namespace convoy::app {

CONVOY_NODE(ActivationForward, activation_forward, ActivationProblem);
CONVOY_NODE(ActivationBackward, activation_backward, ActivationProblem);

struct Activation {
  static constexpr std::string_view kKind = "activation";
  using Nodes = std::tuple<ActivationForward, ActivationBackward>;
  kernels::ActivationProblem function = {};

  static Activation of(kernels::ActivationKind kind) { return {{.kind = kind}}; }
  static Activation relu6() { return {{.kind = kernels::ActivationKind::clip, .min = 0, .max = 6}}; }
  // As PyTorch has it: x / 6 + 1/2 between 0 and 1.
  static Activation hard_sigmoid() {
    return {{.kind = kernels::ActivationKind::hard_sigmoid, .slope = 1.0f / 6, .offset = 0.5f}};
  }

  Shape infer(Shapes inputs) const;
  std::vector<ParameterSpec> parameters(Shapes) const { return {}; }
  std::vector<ParameterSpec> states(Shapes) const { return {}; }
  double flops(Shapes inputs) const { return 4.0 * static_cast<double>(inputs[0].elements()); }
  std::string attributes() const;
  void forward(Emitter& emitter) const;
  void backward(Emitter& emitter) const;
};

}  // namespace convoy::app
