// Batch norm's sums over two gradients, given to the convolution that writes the later one.
#include <map>
#include <set>
#include <utility>

#include "app/graph/step_graph.h"

namespace convoy::app {
namespace {

class NormGradients {
 public:
  explicit NormGradients(StepGraph& graph) : graph_(graph) {
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      const Node& node = graph.nodes[i];
      for (const TensorId input : node.inputs) ++readers_[input];
      for (const TensorId output : node.outputs) writer_.emplace(output, i);
      if (node.kind == "batch_norm_forward") forward_[node.inputs[1]] = i;
    }
  }

  void fuse() {
    std::set<TensorId> written;  // sums that a convolution takes now
    for (Node& node : graph_.nodes)
      if (node.reduces && give_to_convolution(node)) written.insert(node.outputs[0]);
    std::erase_if(graph_.nodes,
                  [&](const Node& node) { return node.reduces && written.contains(node.outputs[0]); });
  }

 private:
  bool give_to_convolution(const Node& reduce) {
    // {x, sums, gamma, beta, dy, [the output or its mask], dy2} -> {dsums, dgamma, dbeta, g}
    TensorId first = reduce.inputs[4],
             last = reduce.inputs.back();  // to be written; the last can take in the first
    if (writer_.at(last) < writer_.at(first)) std::swap(first, last);
    Node& convolution = graph_.nodes[writer_.at(last)];
    // It may give the gradient before another ReLU, and somebody else may read what it gives.
    if (!convolution.with_input_norm || convolution.inputs.size() > 2 || readers_[last] > 1) return false;
    Node& forward = graph_.nodes[forward_.at(reduce.inputs[1])];
    if (!forward.with_relu_mask) return false;
    convolution.make = convolution.with_input_norm(*reduce.reduces);
    convolution.inputs.insert(convolution.inputs.end(), reduce.inputs.begin(), reduce.inputs.begin() + 4);
    convolution.inputs.push_back(kept_relu_mask(graph_, forward));
    convolution.inputs.push_back(first);
    convolution.outputs[0] = reduce.outputs[3];
    convolution.outputs.insert(convolution.outputs.end(), reduce.outputs.begin(), reduce.outputs.begin() + 3);
    return true;
  }

  StepGraph& graph_;
  std::map<TensorId, int> readers_;
  std::map<TensorId, std::size_t> writer_;   // nodes, by what they write first
  std::map<TensorId, std::size_t> forward_;  // batch norms, by their sums
};

}  // namespace

void fuse_norm_gradients(StepGraph& graph) { NormGradients(graph).fuse(); }

}  // namespace convoy::app
