#include <map>
#include <set>

#include "app/graph/passes/fusions.h"

namespace convoy::app {
namespace {

// Returns whether the node can write sums over its output. A convolution with bias or ReLU cannot:
// a batch norm never follows one.
bool can_sum(const Node& node) {
  if (const auto* convolution = std::get_if<Conv2dForward>(&node.op))
    return !convolution->problem.bias && !convolution->problem.relu && !convolution->problem.statistics;
  const auto* addition = std::get_if<AddForward>(&node.op);
  return addition != nullptr && !addition->problem.statistics;
}

void let_sum(Node& node, TensorId sums) {
  if (auto* convolution = std::get_if<Conv2dForward>(&node.op))
    convolution->problem.statistics = true;
  else
    std::get<AddForward>(node.op).problem.statistics = true;
  node.outputs.push_back(sums);
}

}  // namespace

void fuse_statistics(StepGraph& graph) {
  std::map<TensorId, std::size_t> writer;  // nodes that can write sums, by their outputs
  std::set<TensorId> written;              // sums that one of them writes now
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (can_sum(node)) writer[node.outputs[0]] = i;
    if (!node.is<BatchNormStatistics>() || !writer.contains(node.inputs[0])) continue;
    let_sum(graph.nodes[writer[node.inputs[0]]], node.outputs[0]);
    written.insert(node.outputs[0]);
    writer.erase(node.inputs[0]);  // another batch norm of the same tensor keeps its own pass
  }
  std::erase_if(graph.nodes, [&](const Node& node) {
    return node.is<BatchNormStatistics>() && written.contains(node.outputs[0]);
  });
}

}  // namespace convoy::app
