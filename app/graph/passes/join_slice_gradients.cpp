#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "app/graph/passes/fusions.h"

namespace convoy::app {
namespace {

// Finds sums of gradients of channel slices that cover all channels of one tensor, and replaces
// each sum by a concatenation.
class SliceGradients {
 public:
  explicit SliceGradients(StepGraph& graph) : graph_(graph) {
    for (const Node& node : graph.nodes) {
      for (const TensorId input : node.inputs) ++readers_[input];
      if (node.is<SliceBackward>()) slices_[node.outputs[0]] = &node;
    }
  }

  void join() {
    std::set<TensorId> joined;  // gradients that no node reads any more
    for (Node& node : graph_.nodes) {
      if (!node.is<AddForward>()) continue;
      const auto parts = parts_of(node);
      if (!parts) continue;
      joined.insert(node.inputs.begin(), node.inputs.end());
      node.op = ConcatForward{};
      node.inputs = *parts;
    }
    std::erase_if(graph_.nodes, [&](const Node& node) {
      return node.is<SliceBackward>() && joined.contains(node.outputs[0]);
    });
  }

 private:
  // Returns the gradients of the slices in the order of their channels. Returns nothing if they do
  // not cover all channels.
  std::optional<std::vector<TensorId>> parts_of(const Node& sum) const {
    std::map<std::int64_t, TensorId> by_channel;
    for (const TensorId input : sum.inputs) {
      const auto slice = slices_.find(input);
      if (slice == slices_.end() || readers_.at(input) > 1) return std::nullopt;
      by_channel[std::get<SliceBackward>(slice->second->op).problem.begin] = slice->second->inputs[0];
    }
    std::vector<TensorId> parts;
    std::int64_t end = 0;
    for (const auto& [begin, gradient] : by_channel) {
      if (begin != end) return std::nullopt;
      end += channels(gradient);
      parts.push_back(gradient);
    }
    if (parts.size() != sum.inputs.size() || end != channels(sum.outputs[0])) return std::nullopt;
    return parts;
  }
  std::int64_t channels(TensorId tensor) const {
    return graph_.tensors[static_cast<std::size_t>(tensor)].shape[1];
  }

  StepGraph& graph_;
  std::map<TensorId, int> readers_;
  std::map<TensorId, const Node*> slices_;  // for each output of a slice node: the node
};

}  // namespace

void join_slice_gradients(StepGraph& graph) { SliceGradients(graph).join(); }

}  // namespace convoy::app
