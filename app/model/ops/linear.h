// Fully connected layer: [N, ...] -> [N, outputs], weights [outputs, inputs] over the flattened (c, h, w).
#pragma once

#include <optional>

#include "app/graph/emitter.h"

namespace convoy::app {

struct Linear {
  static constexpr std::string_view kKind = "linear";
  std::int64_t outputs = 0;
  bool bias = true;
  // Else uniform in ±1/sqrt(inputs), as in LeCun et al. 1998 and common ever since.
  std::optional<Initializer> weight_initializer = std::nullopt, bias_initializer = std::nullopt;

  Shape infer(Shapes inputs) const;
  std::vector<ParameterSpec> parameters(Shapes inputs) const;
  std::vector<ParameterSpec> states(Shapes) const { return {}; }
  double flops(Shapes inputs) const;
  std::string attributes() const { return {}; }
  void forward(Emitter& emitter) const;
  void backward(Emitter& emitter) const;
};

}  // namespace convoy::app
