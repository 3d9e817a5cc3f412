#include "app/graph/passes/recompute.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace convoy::app {
namespace {

// Returns the operation that gives the same first output, bit for bit, later in the step; nothing
// if there is none.
std::optional<NodeOp> recomputed(const NodeOp& op) {
  const auto* norm = std::get_if<BatchNormForward>(&op);
  if (norm == nullptr) return std::nullopt;
  BatchNormForward again = *norm;
  again.problem.momentum = 0;  // the running statistics are up to date
  again.problem.relu_mask = false;
  return again;
}

bool reads(const Node& node, TensorId tensor) {
  return std::ranges::find(node.inputs, tensor) != node.inputs.end();
}

bool read_in_backward(const StepGraph& graph, TensorId tensor) {
  return std::ranges::any_of(
      graph.nodes, [&](const Node& node) { return node.phase == Phase::backward && reads(node, tensor); });
}

}  // namespace

std::vector<RecomputeCandidate> recompute_candidates(const StepGraph& graph) {
  std::vector<RecomputeCandidate> found;
  std::map<TensorId, const Node*> writer;
  for (const Node& node : graph.nodes) {
    if (node.phase != Phase::forward || !recomputed(node.op) || !read_in_backward(graph, node.outputs[0]))
      continue;
    const Tensor& tensor = graph.tensors[node.outputs[0]];
    found.push_back({node.outputs[0],
                     tensor.shape.elements() * static_cast<std::int64_t>(kernels::bytes_of(tensor.dtype))});
    writer[node.outputs[0]] = &node;
  }
  std::ranges::stable_sort(found, [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  // A node without a residual costs less: it reads one activation and not two.
  std::ranges::stable_sort(found, [&](const auto& a, const auto& b) {
    return writer[a.tensor]->inputs.size() < writer[b.tensor]->inputs.size();
  });
  std::set<TensorId> chosen;
  std::erase_if(found, [&](const RecomputeCandidate& candidate) {
    const Node& node = *writer[candidate.tensor];
    const bool depends =
        std::ranges::any_of(node.inputs, [&](TensorId id) { return chosen.contains(id); }) ||
        std::ranges::any_of(chosen, [&](TensorId id) { return reads(*writer[id], candidate.tensor); });
    if (!depends) chosen.insert(candidate.tensor);
    return depends;
  });
  return found;
}

void recompute(StepGraph& graph, const std::vector<TensorId>& tensors) {
  std::map<TensorId, Node> again;       // nodes that compute again, by the tensors that are dropped
  std::map<TensorId, TensorId> second;  // the tensors that take their place
  for (const Node& node : graph.nodes)
    if (std::ranges::find(tensors, node.outputs[0]) != tensors.end())
      if (auto op = recomputed(node.op))
        again[node.outputs[0]] = {node.layer, *std::move(op), Phase::backward, node.inputs, {}, node.flops,
                                  true};
  std::vector<Node> nodes;
  for (Node& node : graph.nodes) {
    if (node.phase == Phase::backward)
      for (TensorId& input : node.inputs) {
        const auto dropped = again.find(input);
        if (dropped == again.end()) continue;
        if (!second.contains(input)) {
          Tensor copy = graph.tensors[input];
          copy.name += "/again";
          copy.partner = input;
          second[input] = static_cast<TensorId>(graph.tensors.size());
          graph.tensors.push_back(std::move(copy));
          Node made = dropped->second;
          made.outputs = {second[input]};
          nodes.push_back(std::move(made));
        }
        input = second[input];
      }
    nodes.push_back(std::move(node));
  }
  graph.nodes = std::move(nodes);
}

}  // namespace convoy::app
