// Input layer: a batch of images.
#pragma once

#include "app/model/layer.h"

namespace convoy::app {

struct Input {
  static constexpr std::string_view kKind = "input";
  using Nodes = std::tuple<>;
  Shape shape;

  Shape infer(Shapes) const { return shape; }
  std::vector<ParameterSpec> parameters(Shapes) const { return {}; }
  std::vector<ParameterSpec> states(Shapes) const { return {}; }
  double flops(Shapes) const { return 0; }
  std::string attributes() const { return {}; }
  void forward(Emitter&) const {}
  void backward(Emitter&) const {}
  void write(LayerWriter&) const {}
};

}  // namespace convoy::app
