#include "app/graph/passes/recompute.h"

#include <algorithm>
#include <map>
#include <set>

namespace convoy::app {
namespace {

std::size_t index(TensorId id) { return static_cast<std::size_t>(id); }

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
    if (!node.again || node.phase != Phase::forward || !read_in_backward(graph, node.outputs[0])) continue;
    const Tensor& tensor = graph.tensors[index(node.outputs[0])];
    found.push_back({node.outputs[0],
                     tensor.shape.elements() * static_cast<std::int64_t>(kernels::bytes_of(tensor.dtype))});
    writer[node.outputs[0]] = &node;
  }
  std::ranges::stable_sort(found, [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  // Those that need one tensor alone cost less than a residual's, which read two.
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
  std::map<TensorId, Node> again;       // of what is dropped: the node that makes it
  std::map<TensorId, TensorId> second;  // and the tensor that it makes
  for (const Node& node : graph.nodes)
    if (node.again && std::ranges::find(tensors, node.outputs[0]) != tensors.end())
      again[node.outputs[0]] = node;
  std::vector<Node> nodes;
  for (Node& node : graph.nodes) {
    if (node.phase == Phase::backward)
      for (TensorId& input : node.inputs) {
        const auto dropped = again.find(input);
        if (dropped == again.end()) continue;
        if (!second.contains(input)) {
          Tensor copy = graph.tensors[index(input)];
          copy.name += "/again";
          copy.partner = input;
          second[input] = static_cast<TensorId>(graph.tensors.size());
          graph.tensors.push_back(std::move(copy));
          Node made = dropped->second;
          made.phase = Phase::backward;
          made.kind += "_again";
          made.make = made.again;
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
