// Fully connected layer: [N, ...] -> [N, outputs]. Its weights are [outputs, inputs], with the
// inputs in the order (c, h, w).
#pragma once

#include <optional>

#include "app/model/layer.h"
#include "kernels/linear/linear.h"

namespace convoy::app {

CONVOY_REPEATABLE_NODE(LinearForward, linear_forward, LinearProblem);
CONVOY_NODE(LinearBackwardData, linear_backward_data, LinearProblem);
CONVOY_NODE(LinearBackwardWeights, linear_backward_weights, LinearProblem);

struct Linear {
  static constexpr std::string_view kKind = "linear";
  using Nodes = std::tuple<LinearForward, LinearBackwardData, LinearBackwardWeights>;
  std::int64_t outputs = 0;
  bool bias = true;
  // If not set, weights and bias are uniform in ±1/sqrt(inputs), as in LeCun et al. 1998.
  std::optional<Initializer> weight_initializer = std::nullopt, bias_initializer = std::nullopt;

  Shape infer(Shapes inputs) const;
  std::vector<ParameterSpec> parameters(Shapes inputs) const;
  std::vector<ParameterSpec> states(Shapes) const { return {}; }
  double flops(Shapes inputs) const;
  std::string attributes() const { return {}; }
  void forward(Emitter& emitter) const;
  void backward(Emitter& emitter) const;
  void write(LayerWriter& onnx) const;
};

}  // namespace convoy::app
