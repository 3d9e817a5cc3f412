// Layer normalisation of every pixel over its channels (Ba et al. 2016), as in ConvNeXt.
#pragma once

#include "app/model/layer.h"
#include "kernels/layer_norm/layer_norm.h"

namespace convoy::app {

CONVOY_REPEATABLE_NODE(LayerNormForward, layer_norm_forward, LayerNormProblem);
CONVOY_NODE(LayerNormBackward, layer_norm_backward, LayerNormProblem);

struct LayerNorm {
  static constexpr std::string_view kKind = "layer_norm";
  using Nodes = std::tuple<LayerNormForward, LayerNormBackward>;
  float epsilon = 1e-6f;

  Shape infer(Shapes inputs) const;
  std::vector<ParameterSpec> parameters(Shapes inputs) const;
  std::vector<ParameterSpec> states(Shapes) const { return {}; }
  double flops(Shapes inputs) const { return 7.0 * static_cast<double>(inputs[0].elements()); }
  std::string attributes() const;
  void forward(Emitter& emitter) const;
  void backward(Emitter& emitter) const;
  void write(LayerWriter& onnx) const;
};

}  // namespace convoy::app
