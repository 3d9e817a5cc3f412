#include <map>
#include <set>

#include "app/graph/step_graph.h"

namespace convoy::app {

void fuse_statistics(StepGraph& graph) {
  std::map<TensorId, std::size_t> writer;  // nodes that can give sums, by their outputs
  std::set<TensorId> written;              // sums that one of them writes now
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (node.with_statistics) writer[node.outputs[0]] = i;
    if (node.kind != "batch_norm_statistics" || !writer.contains(node.inputs[0])) continue;
    Node& producer = graph.nodes[writer[node.inputs[0]]];
    producer.make = producer.with_statistics;
    producer.outputs.push_back(node.outputs[0]);
    written.insert(node.outputs[0]);
    writer.erase(node.inputs[0]);  // another batch norm of the same tensor keeps its own pass
  }
  std::erase_if(graph.nodes, [&](const Node& node) {
    return node.kind == "batch_norm_statistics" && written.contains(node.outputs[0]);
  });
}

}  // namespace convoy::app
