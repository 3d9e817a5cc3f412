// Fully connected layer: [N, ...] -> [N, outputs], weights [outputs, inputs] over the flattened (c, h, w).
#pragma once

#include "app/model/emitter.h"

namespace convoy::app {

struct Linear {
  static constexpr std::string_view kKind = "linear";
  std::int64_t outputs = 0;
  bool bias = true;

  Shape infer(Shapes inputs) const;
  std::vector<ParameterSpec> parameters(Shapes inputs) const;
  std::vector<ParameterSpec> states(Shapes) const { return {}; }
  double flops(Shapes inputs) const;
  std::string attributes() const { return {}; }
  void forward(Emitter& emitter) const;
  void backward(Emitter& emitter) const;
};

}  // namespace convoy::app
