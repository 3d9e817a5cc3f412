// Masks in place of outputs, of batch norms that add a residual.
#include <map>

#include "app/graph/step_graph.h"

namespace convoy::app {

TensorId kept_relu_mask(StepGraph& graph, Node& forward) {
  if (forward.outputs.size() == 1) {
    // Its type and shape are settled by the kernel that writes it.
    graph.tensors.push_back({forward.layer + "/relu_mask", TensorRole::activation, kernels::DType::u8,
                             graph.tensors[static_cast<std::size_t>(forward.outputs[0])].shape});
    forward.make = forward.with_relu_mask;
    forward.outputs.push_back(static_cast<TensorId>(graph.tensors.size()) - 1);
  }
  return forward.outputs[1];
}

void fuse_relu_masks(StepGraph& graph) {
  constexpr std::size_t kOutput = 5;       // of batch_norm_backward_reduce's inputs: the layer's output
  std::map<TensorId, std::size_t> writer;  // batch norms that can keep a mask, by their outputs
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    Node& node = graph.nodes[i];
    if (!node.with_relu_mask) continue;
    if (node.phase == Phase::forward) {
      writer[node.outputs[0]] = i;
      continue;
    }
    node.make = node.with_relu_mask;
    node.inputs[kOutput] = kept_relu_mask(graph, graph.nodes[writer.at(node.inputs[kOutput])]);
  }
}

}  // namespace convoy::app
