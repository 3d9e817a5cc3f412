// Softmax layer over the channels, for use inside a network. The last layer of a network gives
// logits, because the loss computes its own softmax.
#pragma once

#include "app/model/layer.h"
#include "kernels/softmax/softmax.h"

namespace convoy::app {

CONVOY_REPEATABLE_NODE(SoftmaxForward, softmax_forward, SoftmaxProblem);
CONVOY_NODE(SoftmaxBackward, softmax_backward, SoftmaxProblem);

struct Softmax {
  static constexpr std::string_view kKind = "softmax";
  using Nodes = std::tuple<SoftmaxForward, SoftmaxBackward>;

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
