// Dropout layer: in training each element is zero with probability `rate`, the others are scaled by 1 / (1 - rate).
#pragma once

#include "app/graph/emitter.h"

namespace convoy::app {

struct Dropout {
  static constexpr std::string_view kKind = "dropout";
  float rate = 0.5f;

  Shape infer(Shapes inputs) const;
  std::vector<ParameterSpec> parameters(Shapes) const { return {}; }
  std::vector<ParameterSpec> states(Shapes) const { return {}; }
  double flops(Shapes inputs) const { return static_cast<double>(inputs[0].elements()); }
  std::string attributes() const;
  void forward(Emitter& emitter) const;
  void backward(Emitter& emitter) const;
};

}  // namespace convoy::app
