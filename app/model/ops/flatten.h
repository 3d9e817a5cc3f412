// Flatten layer: turns images [N, C, H, W] into rows [N, C * H * W]. A linear layer needs no
// flatten layer before it, because it flattens its input.
#pragma once

#include "app/model/layer.h"
#include "kernels/reorder/reorder.h"

namespace convoy::app {

CONVOY_REPEATABLE_NODE(ReorderForward, reorder_forward, ReorderProblem);

struct Flatten {
  static constexpr std::string_view kKind = "flatten";
  using Nodes = std::tuple<ReorderForward>;

  Shape infer(Shapes inputs) const;
  std::vector<ParameterSpec> parameters(Shapes) const { return {}; }
  std::vector<ParameterSpec> states(Shapes) const { return {}; }
  double flops(Shapes) const { return 0; }
  std::string attributes() const;
  void forward(Emitter& emitter) const;
  void backward(Emitter& emitter) const;
  void write(LayerWriter& onnx) const;
};

}  // namespace convoy::app
