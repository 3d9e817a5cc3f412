#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "app/graph/passes/fusions.h"

namespace convoy::app {
namespace {

using kernels::InputAffine;

// Returns what the batch norm applies after its scale and shift, or nothing if a convolution cannot
// do the same.
std::optional<InputAffine> limits_of(const Node& node) {
  const auto* forward = std::get_if<BatchNormForward>(&node.op);
  if (forward == nullptr || forward->problem.residual || node.outputs.size() > 1) return {};
  InputAffine limits;
  if (forward->problem.relu) limits.least = 0;
  if (const auto& activation = forward->problem.activation) {
    if (activation->kind != kernels::ActivationKind::clip) return {};
    limits.least = activation->min, limits.most = activation->max;
  }
  return limits;
}

kernels::Conv2dProblem* problem_of(Node& node) {
  if (auto* forward = std::get_if<Conv2dForward>(&node.op)) return &forward->problem;
  if (auto* weights = std::get_if<Conv2dBackwardWeights>(&node.op)) return &weights->problem;
  return nullptr;
}

class NormInputs {
 public:
  NormInputs(StepGraph& graph, const NormInputRule& rule)
      : graph_(graph), rule_(rule), readers_(graph.tensors.size()) {
    for (std::size_t i = 0; i < graph.nodes.size(); ++i)
      for (const TensorId input : graph.nodes[i].inputs) readers_[index(input)].push_back(i);
  }

  void fuse() {
    for (Node& node : graph_.nodes) {
      const std::optional<InputAffine> limits = limits_of(node);
      if (limits && all_can_normalise(node.outputs[0])) move(node, *limits);
    }
  }

 private:
  static std::size_t index(TensorId id) { return static_cast<std::size_t>(id); }
  kernels::Shape shape(TensorId id) const { return graph_.tensors[index(id)].shape; }

  bool all_can_normalise(TensorId y) const {
    const std::vector<std::size_t>& readers = readers_[index(y)];
    if (readers.empty() || shape(y).elements() < rule_.least_elements) return false;
    return std::ranges::all_of(readers, [&](std::size_t reader) {
      Node& node = graph_.nodes[reader];
      const kernels::Conv2dProblem* const problem = problem_of(node);
      if (problem == nullptr || node.inputs[0] != y || std::ranges::count(node.inputs, y) > 1) return false;
      const kernels::Shape weights = shape(node.is<Conv2dForward>() ? node.inputs[1] : node.outputs[0]);
      return weights[0] <= rule_.most_filters && suits_input_affine(*problem, weights);
    });
  }

  // Makes all readers of the batch norm's output read its input.
  void move(Node& norm, const InputAffine& limits) {
    const TensorId x = norm.inputs[0], y = norm.outputs[0], affine = TensorId(graph_.tensors.size());
    graph_.tensors.push_back({.name = norm.layer + "/affine",
                              .dtype = kernels::DType::f32,
                              .shape = {2 * shape(x)[1]},
                              .full_precision = true});
    kernels::BatchNormProblem problem = std::get<BatchNormForward>(norm.op).problem;
    problem.pixels = shape(x).elements() / (shape(x)[0] * shape(x)[1]);
    norm.op = BatchNormAffine{problem};
    norm.inputs.erase(norm.inputs.begin());
    norm.outputs = {affine};
    norm.flops = 10.0 * static_cast<double>(shape(x)[1]);
    for (const std::size_t reader : readers_[index(y)]) {
      Node& node = graph_.nodes[reader];
      problem_of(node)->input_affine = limits;
      node.inputs[0] = x;
      node.inputs.push_back(affine);
    }
    for (Tensor& tensor : graph_.tensors)
      if (tensor.same_layout_as == y) tensor.same_layout_as = x;
  }

  StepGraph& graph_;
  const NormInputRule rule_;
  // For each tensor: the nodes that read it.
  std::vector<std::vector<std::size_t>> readers_;
};

}  // namespace

void fuse_norm_inputs(StepGraph& graph, const NormInputRule& rule) { NormInputs(graph, rule).fuse(); }

}  // namespace convoy::app
