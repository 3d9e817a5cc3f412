#include <map>

#include "app/graph/passes/fusions.h"

namespace convoy::app {

TensorId kept_relu_mask(StepGraph& graph, Node& forward) {
  kernels::BatchNormProblem& problem = std::get<BatchNormForward>(forward.op).problem;
  if (!problem.relu_mask) {
    problem.relu_mask = true;
    // The type and shape here are placeholders: the kernel that writes the mask decides how its
    // bits are laid out.
    graph.tensors.push_back({forward.layer + "/relu_mask", TensorRole::activation, kernels::DType::u8,
                             graph.tensors[forward.outputs[0]].shape});
    forward.outputs.push_back(static_cast<TensorId>(graph.tensors.size()) - 1);
  }
  return forward.outputs[1];
}

void fuse_relu_masks(StepGraph& graph) {
  // The position of y in the inputs of BatchNormBackwardReduce.
  constexpr std::size_t kOutput = 5;
  std::map<TensorId, std::size_t> writer;  // for each output of a batch norm: its node
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    Node& node = graph.nodes[i];
    if (node.is<BatchNormForward>()) writer[node.outputs[0]] = i;
    auto* const reduce = std::get_if<BatchNormBackwardReduce>(&node.op);
    // Without a residual backward_reduce does not read y, since it finds the zeros of the ReLU from
    // x. So a mask would save nothing.
    if (reduce == nullptr || !reduce->problem.relu || !reduce->problem.residual) continue;
    if (std::exchange(reduce->problem.relu_mask, true)) continue;
    node.inputs[kOutput] = kept_relu_mask(graph, graph.nodes[writer.at(node.inputs[kOutput])]);
  }
}

}  // namespace convoy::app
