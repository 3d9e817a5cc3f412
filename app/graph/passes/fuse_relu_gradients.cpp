#include <map>
#include <set>

#include "app/graph/step_graph.h"

namespace convoy::app {

void fuse_relu_gradients(StepGraph& graph) {
  std::map<TensorId, int> readers;
  for (const Node& node : graph.nodes)
    for (const TensorId input : node.inputs) ++readers[input];
  std::map<TensorId, std::size_t> writer;  // nodes that can give the gradient before a ReLU, by their outputs
  std::set<TensorId> replaced;             // what they no longer write
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (node.with_relu_gradient) writer[node.outputs[0]] = i;
    if (node.kind != "relu_backward" || !writer.contains(node.inputs[1]) || readers[node.inputs[1]] > 1)
      continue;
    Node& producer = graph.nodes[writer[node.inputs[1]]];
    producer.make = producer.with_relu_gradient;
    producer.inputs.push_back(node.inputs[0]);
    producer.outputs[0] = node.outputs[0];
    replaced.insert(node.inputs[1]);
  }
  std::erase_if(graph.nodes, [&](const Node& node) {
    return node.kind == "relu_backward" && replaced.contains(node.inputs[1]);
  });
}

}  // namespace convoy::app
