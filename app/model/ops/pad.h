// Pad layer: adds pixels of a constant value at the edges of images. A negative amount removes
// pixels.
#pragma once

#include "app/model/layer.h"
#include "kernels/pad/pad.h"

namespace convoy::app {

CONVOY_REPEATABLE_NODE(PadForward, pad_forward, PadProblem);
CONVOY_NODE(PadBackward, pad_backward, PadProblem);

struct Pad {
  static constexpr std::string_view kKind = "pad";
  using Nodes = std::tuple<PadForward, PadBackward>;
  kernels::PadProblem amounts = {};

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
