// Local response normalisation across channels (Krizhevsky et al. 2012).
#pragma once

#include "app/model/layer.h"
#include "kernels/local_response_norm/local_response_norm.h"

namespace convoy::app {

CONVOY_REPEATABLE_NODE(LocalResponseNormForward, local_response_norm_forward, LocalResponseNormProblem);
CONVOY_NODE(LocalResponseNormBackward, local_response_norm_backward, LocalResponseNormProblem);

struct LocalResponseNorm {
  static constexpr std::string_view kKind = "local_response_norm";
  using Nodes = std::tuple<LocalResponseNormForward, LocalResponseNormBackward>;
  int size = 5;
  float alpha = 1e-4f, beta = 0.75f, k = 2.0f;

  Shape infer(Shapes inputs) const;
  std::vector<ParameterSpec> parameters(Shapes) const { return {}; }
  std::vector<ParameterSpec> states(Shapes) const { return {}; }
  double flops(Shapes inputs) const { return (2.0 * size + 3.0) * static_cast<double>(inputs[0].elements()); }
  std::string attributes() const;
  void forward(Emitter& emitter) const;
  void backward(Emitter& emitter) const;
  void write(LayerWriter& onnx) const;
};

}  // namespace convoy::app
