// Group normalisation layer (Wu & He 2018). It divides the channels into groups and normalises each
// group of each sample. With as many groups as channels it is instance normalisation.
#pragma once

#include "app/model/layer.h"
#include "kernels/group_norm/group_norm.h"

namespace convoy::app {

CONVOY_REPEATABLE_NODE(GroupNormForward, group_norm_forward, GroupNormProblem);
CONVOY_NODE(GroupNormBackward, group_norm_backward, GroupNormProblem);

struct GroupNorm {
  static constexpr std::string_view kKind = "group_norm";
  using Nodes = std::tuple<GroupNormForward, GroupNormBackward>;
  int groups = 32;  // must divide the number of channels
  float epsilon = 1e-5f;

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
