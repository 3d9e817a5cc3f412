// Multiply layer: the product of two tensors of equal shape, or of an image [N, C, H, W] and a gate
// [N, C, 1, 1], as in squeeze-and-excitation (Hu et al. 2018).
#pragma once

#include "app/model/layer.h"
#include "kernels/broadcast/broadcast.h"

namespace convoy::app {

CONVOY_REPEATABLE_NODE(MultiplyForward, multiply_forward, BroadcastProblem);
CONVOY_NODE(MultiplyBackward, multiply_backward, BroadcastProblem);

struct Multiply {
  static constexpr std::string_view kKind = "multiply";
  using Nodes = std::tuple<MultiplyForward, MultiplyBackward>;

  Shape infer(Shapes inputs) const;
  std::vector<ParameterSpec> parameters(Shapes) const { return {}; }
  std::vector<ParameterSpec> states(Shapes) const { return {}; }
  double flops(Shapes inputs) const { return static_cast<double>(inputs[0].elements()); }
  std::string attributes() const { return {}; }
  void forward(Emitter& emitter) const;
  void backward(Emitter& emitter) const;
  void write(LayerWriter& onnx) const;
};

}  // namespace convoy::app
