#include <algorithm>
#include <map>
#include <set>

#include "app/graph/passes/fusions.h"

namespace convoy::app {
namespace {

// Returns whether the node can also write the sums over its output that a batch norm needs. Kernels
// for this exist only without a bias and a ReLU, which do not occur before a batch norm.
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

// Finds or makes the sums over a tensor that a batch norm needs. Some node may write these sums
// already. Otherwise they can be made if the node that writes the tensor can also write sums. Call
// visit() for the nodes in the order of the graph.
class KnownSums {
 public:
  explicit KnownSums(StepGraph& graph) : graph_(graph) {}

  void visit(std::size_t index) {
    const Node& node = graph_.nodes[index];
    if (node.is<BatchNormStatistics>()) sums_[node.inputs[0]] = node.outputs[0];
    if (can_sum(node)) writer_[node.outputs[0]] = index;
    if (node.is<Conv2dForward>() && node.outputs.size() == 2) sums_[node.outputs[0]] = node.outputs[1];
    if (node.is<AddForward>() && node.outputs.size() == 2) sums_[node.outputs[0]] = node.outputs[1];
  }
  bool reach(TensorId tensor) const { return sums_.contains(tensor) || writer_.contains(tensor); }
  TensorId of(TensorId tensor) {
    if (const auto found = sums_.find(tensor); found != sums_.end()) return found->second;
    Node& node = graph_.nodes[writer_.at(tensor)];
    const auto sums = static_cast<TensorId>(graph_.tensors.size());
    graph_.tensors.push_back({node.layer + "/sums",
                              TensorRole::activation,
                              kernels::DType::f64,
                              {2, graph_.tensors[tensor].shape[1]}});
    let_sum(node, sums);
    return sums_[tensor] = sums;
  }

 private:
  StepGraph& graph_;
  std::map<TensorId, TensorId> sums_;
  std::map<TensorId, std::size_t> writer_;
};

// Changes batch norms whose input is a concatenation. If the sums over all parts of the
// concatenation exist or can be made, they are joined, and the batch norm needs no pass that sums
// its input. This gives the same sums, since they are per channel.
void join_sums_of_parts(StepGraph& graph) {
  KnownSums known(graph);
  std::map<TensorId, std::size_t> joined;  // for each output of a concatenation: its node
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    Node& node = graph.nodes[i];
    if (node.is<ConcatForward>()) joined[node.outputs[0]] = i;
    known.visit(i);
    if (!node.is<BatchNormStatistics>() || !joined.contains(node.inputs[0])) continue;
    const std::vector<TensorId> parts = graph.nodes[joined[node.inputs[0]]].inputs;
    if (!std::ranges::all_of(parts, [&](TensorId part) { return known.reach(part); })) continue;
    node.op = ConcatForward{};
    node.inputs.clear();
    for (const TensorId part : parts) node.inputs.push_back(known.of(part));
  }
}

}  // namespace

void fuse_statistics(StepGraph& graph) {
  // For each tensor: the node that writes it and can also write sums over it.
  std::map<TensorId, std::size_t> writer;
  std::set<TensorId> written;  // the sums that another node now writes
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (can_sum(node)) writer[node.outputs[0]] = i;
    if (!node.is<BatchNormStatistics>() || !writer.contains(node.inputs[0])) continue;
    let_sum(graph.nodes[writer[node.inputs[0]]], node.outputs[0]);
    written.insert(node.outputs[0]);
    // A node can write its sums only once. Another batch norm of this tensor keeps its own pass.
    writer.erase(node.inputs[0]);
  }
  std::erase_if(graph.nodes, [&](const Node& node) {
    return node.is<BatchNormStatistics>() && written.contains(node.outputs[0]);
  });
  // With several ranks sums are all-reduced in place. The sums of a part may then already include
  // other ranks, and the all-reduce of the joined sums would count these twice.
  if (std::ranges::none_of(graph.nodes, &Node::is<AllReduce>)) join_sums_of_parts(graph);
}

}  // namespace convoy::app
