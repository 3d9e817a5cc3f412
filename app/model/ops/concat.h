// Concat layer: joins images of equal size along the channels.
#pragma once

#include "app/model/layer.h"
#include "kernels/concat/concat.h"

namespace convoy::app {

CONVOY_REPEATABLE_NODE(ConcatForward, concat_forward, ConcatProblem);
CONVOY_NODE(ConcatBackward, concat_backward, ConcatProblem);

struct Concat {
  static constexpr std::string_view kKind = "concat";
  using Nodes = std::tuple<ConcatForward, ConcatBackward>;

  Shape infer(Shapes inputs) const;
  std::vector<ParameterSpec> parameters(Shapes) const { return {}; }
  std::vector<ParameterSpec> states(Shapes) const { return {}; }
  double flops(Shapes) const { return 0; }
  std::string attributes() const { return {}; }
  void forward(Emitter& emitter) const;
  void backward(Emitter& emitter) const;
  void write(LayerWriter& onnx) const;
};

}  // namespace convoy::app
