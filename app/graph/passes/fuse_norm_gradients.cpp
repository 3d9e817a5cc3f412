#include <map>
#include <set>
#include <utility>

#include "app/graph/passes/fusions.h"

namespace convoy::app {
namespace {

// Returns whether the node is a BatchNormBackwardReduce whose work should move into a convolution.
// This pays only if the node adds two gradients. Otherwise the convolution becomes slower by as
// much time as the move saves (docs/results/training.md).
bool can_be_given(const Node& node) {
  const auto* reduce = std::get_if<BatchNormBackwardReduce>(&node.op);
  return reduce != nullptr && reduce->problem.relu && reduce->problem.second_gradient;
}

// Returns whether the node is a convolution's backward that can also do the work of a
// BatchNormBackwardReduce. No kernel can do this with a stride, or if it already applies the
// derivative of a ReLU.
bool can_take(const Node& node) {
  const auto* convolution = std::get_if<Conv2dBackwardData>(&node.op);
  if (convolution == nullptr) return false;
  const kernels::Conv2dProblem& problem = convolution->problem;
  return problem.stride[0] == 1 && problem.stride[1] == 1 && !problem.input_relu && !problem.input_norm;
}

class NormGradients {
 public:
  explicit NormGradients(StepGraph& graph) : graph_(graph) {
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      const Node& node = graph.nodes[i];
      for (const TensorId input : node.inputs) ++readers_[input];
      for (const TensorId output : node.outputs) writer_.emplace(output, i);
      if (node.is<BatchNormForward>()) forward_[node.inputs[1]] = i;
    }
  }

  void fuse() {
    std::set<TensorId> given;  // the sums that are now written by a convolution
    for (const Node& node : graph_.nodes)
      if (can_be_given(node) && give_to_convolution(node)) given.insert(node.outputs[0]);
    std::erase_if(graph_.nodes, [&](const Node& node) {
      return node.is<BatchNormBackwardReduce>() && given.contains(node.outputs[0]);
    });
  }

 private:
  // Moves the work of `reduce` into the node that writes the later of the two gradients that
  // `reduce` adds. Returns false if that node is no suitable convolution, or if another node reads
  // the later gradient, too.
  bool give_to_convolution(const Node& reduce) {
    // Inputs and outputs of `reduce`: {x, sums, gamma, beta, dy, [the output or its mask], dy2} ->
    // {dsums, dgamma, dbeta, g}. dy and dy2 are the two gradients; g is their sum before the ReLU.
    TensorId first = reduce.inputs[4], last = reduce.inputs.back();
    if (writer_.at(last) < writer_.at(first)) std::swap(first, last);
    Node& convolution = graph_.nodes[writer_.at(last)];
    if (!can_take(convolution) || readers_[last] > 1) return false;
    Node& forward = graph_.nodes[forward_.at(reduce.inputs[1])];
    std::get<Conv2dBackwardData>(convolution.op).problem.input_norm =
        std::get<BatchNormBackwardReduce>(reduce.op).problem;
    convolution.inputs.insert(convolution.inputs.end(), reduce.inputs.begin(), reduce.inputs.begin() + 4);
    convolution.inputs.push_back(kept_relu_mask(graph_, forward));
    convolution.inputs.push_back(first);
    convolution.outputs[0] = reduce.outputs[3];
    convolution.outputs.insert(convolution.outputs.end(), reduce.outputs.begin(), reduce.outputs.begin() + 3);
    return true;
  }

  StepGraph& graph_;
  std::map<TensorId, int> readers_;
  // For each tensor: the first node that writes it.
  std::map<TensorId, std::size_t> writer_;
  // For each tensor of sums: the forward node of the batch norm that reads the sums.
  std::map<TensorId, std::size_t> forward_;
};

}  // namespace

void fuse_norm_gradients(StepGraph& graph) { NormGradients(graph).fuse(); }

}  // namespace convoy::app
