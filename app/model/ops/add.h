// Add layer: the sum of two or more tensors of one shape, as in residual connections.
#pragma once

#include "app/model/layer.h"
#include "kernels/add/add.h"

namespace convoy::app {

CONVOY_NODE(AddForward, add_forward, AddProblem);

struct Add {
  static constexpr std::string_view kKind = "add";
  using Nodes = std::tuple<AddForward>;

  Shape infer(Shapes inputs) const;
  std::vector<ParameterSpec> parameters(Shapes) const { return {}; }
  std::vector<ParameterSpec> states(Shapes) const { return {}; }
  double flops(Shapes inputs) const {
    return static_cast<double>(inputs[0].elements() * (std::ssize(inputs) - 1));
  }
  std::string attributes() const { return {}; }
  void forward(Emitter& emitter) const;
  void backward(Emitter& emitter) const;
};

}  // namespace convoy::app
