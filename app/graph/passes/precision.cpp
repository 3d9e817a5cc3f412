#include "app/graph/passes/precision.h"

#include <map>

namespace convoy::app {
namespace {

using kernels::DType;

// Returns whether the node multiplies matrices or convolves. Only then may its inputs be rounded.
bool multiplies(const Node& node) {
  return std::visit(
      [](const auto& op) {
        return requires { op.problem.tf32; };
      },
      node.op);
}

// Returns whether the tensor is a weight. A bias is no weight, since it is added to float32 sums.
bool is_weight(const Tensor& tensor) {
  return tensor.role == TensorRole::parameter && tensor.shape.rank() > 1;
}

}  // namespace

void store_in_bf16(StepGraph& graph) {
  for (Tensor& tensor : graph.tensors)
    if ((tensor.role == TensorRole::activation || tensor.role == TensorRole::images) &&
        tensor.dtype == DType::f32 && !tensor.full_precision)
      tensor.dtype = DType::bf16;
  std::map<TensorId, TensorId> copies;
  for (GraphParameter& parameter : graph.parameters) {
    const Tensor weight = graph.tensors[parameter.tensor];
    if (!is_weight(weight)) continue;
    parameter.copy = static_cast<TensorId>(graph.tensors.size());
    graph.tensors.push_back({weight.name, TensorRole::parameter_copy, DType::bf16, weight.shape});
    copies[parameter.tensor] = parameter.copy;
    // The gradient, like the parameter, gets the layout of the copy.
    for (Tensor& tensor : graph.tensors)
      if (tensor.same_layout_as == parameter.tensor) tensor.same_layout_as = parameter.copy;
  }
  for (Node& node : graph.nodes) {
    if (!multiplies(node)) continue;
    for (TensorId& input : node.inputs)
      if (const auto found = copies.find(input); found != copies.end()) input = found->second;
  }
}

}  // namespace convoy::app
