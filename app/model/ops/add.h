// Add layer: the sum of two or more tensors of equal shape, as in residual connections, or the sum
// of an image [N, C, H, W] and a tensor [N, C, 1, 1].
#pragma once

#include "app/model/layer.h"
#include "kernels/add/add.h"
#include "kernels/broadcast/broadcast.h"

namespace convoy::app {

CONVOY_NODE(AddForward, add_forward, AddProblem);
CONVOY_REPEATABLE_NODE(BroadcastAddForward, broadcast_add_forward, BroadcastProblem);
CONVOY_NODE(BroadcastAddBackward, broadcast_add_backward, BroadcastProblem);

struct Add {
  static constexpr std::string_view kKind = "add";
  using Nodes = std::tuple<AddForward, BroadcastAddForward, BroadcastAddBackward>;

  Shape infer(Shapes inputs) const;
  std::vector<ParameterSpec> parameters(Shapes) const { return {}; }
  std::vector<ParameterSpec> states(Shapes) const { return {}; }
  double flops(Shapes inputs) const {
    return static_cast<double>(inputs[0].elements() * (std::ssize(inputs) - 1));
  }
  std::string attributes() const { return {}; }
  void forward(Emitter& emitter) const;
  void backward(Emitter& emitter) const;
  void write(LayerWriter& onnx) const;
};

}  // namespace convoy::app
