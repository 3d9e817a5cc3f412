#include <map>
#include <set>

#include "app/graph/passes/fusions.h"

namespace convoy::app {
namespace {

// Returns whether the node can also apply the derivative of a ReLU to its result. It then reads the
// output of the ReLU as one more input.
bool can_rectify(const Node& node) {
  const auto* convolution = std::get_if<Conv2dBackwardData>(&node.op);
  return convolution != nullptr && !convolution->problem.input_relu && !convolution->problem.input_norm;
}

}  // namespace

void fuse_relu_gradients(StepGraph& graph) {
  std::map<TensorId, int> readers;
  for (const Node& node : graph.nodes)
    for (const TensorId input : node.inputs) ++readers[input];
  // For each tensor: the node that writes it and can also apply a ReLU's derivative.
  std::map<TensorId, std::size_t> writer;
  // Gradients after a ReLU that no node writes any more. Their former writers apply the ReLU's
  // derivative and write the gradient before the ReLU instead.
  std::set<TensorId> replaced;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (can_rectify(node)) writer[node.outputs[0]] = i;
    if (!node.is<ReluBackward>() || !writer.contains(node.inputs[1]) || readers[node.inputs[1]] > 1) continue;
    Node& producer = graph.nodes[writer[node.inputs[1]]];
    std::get<Conv2dBackwardData>(producer.op).problem.input_relu = true;
    producer.inputs.push_back(node.inputs[0]);
    producer.outputs[0] = node.outputs[0];
    replaced.insert(node.inputs[1]);
  }
  std::erase_if(graph.nodes, [&](const Node& node) {
    return node.is<ReluBackward>() && replaced.contains(node.inputs[1]);
  });
}

}  // namespace convoy::app
