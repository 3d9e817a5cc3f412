// Elementwise activation layer y = f(x), for all functions but the ReLU (relu.h). The output has
// the shape of the input.
#pragma once

#include "app/model/layer.h"
#include "kernels/activation/activation.h"

namespace convoy::app {

CONVOY_REPEATABLE_NODE(ActivationForward, activation_forward, ActivationProblem);
CONVOY_NODE(ActivationBackward, activation_backward, ActivationProblem);

struct Activation {
  static constexpr std::string_view kKind = "activation";
  using Nodes = std::tuple<ActivationForward, ActivationBackward>;
  kernels::ActivationProblem function = {};

  static Activation of(kernels::ActivationKind kind) { return {{.kind = kind}}; }
  static Activation relu6() { return {{.kind = kernels::ActivationKind::clip, .min = 0, .max = 6}}; }
  // Returns PyTorch's hard sigmoid: x / 6 + 1/2, limited to the interval from 0 to 1.
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
  void write(LayerWriter& onnx) const;
};

}  // namespace convoy::app
