#include "app/compile/early_updates.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "app/compile/update_kernels.h"

namespace convoy::app {
namespace {

std::size_t index(TensorId id) { return static_cast<std::size_t>(id); }

bool contains(const std::vector<TensorId>& operands, TensorId tensor) {
  return std::ranges::find(operands, tensor) != operands.end();
}

class EarlyUpdates {
 public:
  EarlyUpdates(CompiledGraph step, const StepOptions& options) : step_(std::move(step)), options_(options) {}

  CompiledGraph run(int reuse_delay) {
    updates_after_.resize(step_.graph.nodes.size());
    for (const GraphParameter& parameter : step_.graph.parameters)
      if (is_large(parameter) && has_own_gradient(parameter))
        updates_after_[static_cast<std::size_t>(last_use(parameter))].push_back(&parameter);
    std::vector<Node> nodes = std::exchange(step_.graph.nodes, {});
    std::vector<kernels::Kernel> kernels = std::exchange(step_.kernels, {});
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const std::string layer = nodes[i].layer;
      append(std::move(nodes[i]), std::move(kernels[i]));
      for (const GraphParameter* parameter : updates_after_[i]) append_update(*parameter, layer);
    }
    return assign_buffers(std::move(step_.graph), std::move(step_.descs), std::move(step_.kernels),
                          reuse_delay);
  }

 private:
  bool is_large(const GraphParameter& parameter) const {
    return static_cast<std::int64_t>(step_.descs[index(parameter.tensor)].bytes()) >=
           options_.early_update_bytes;
  }

  // Returns the number of the last node that uses the parameter, its bf16 copy or its gradient.
  int last_use(const GraphParameter& parameter) const {
    int last = -1;
    for (int i = 0; i < std::ssize(step_.graph.nodes); ++i) {
      const Node& node = step_.graph.nodes[static_cast<std::size_t>(i)];
      for (const TensorId tensor : {parameter.tensor, parameter.copy, parameter.gradient})
        if (tensor >= 0 && (contains(node.inputs, tensor) || contains(node.outputs, tensor))) last = i;
    }
    return last;
  }

  // Returns whether backward writes the gradient, and does not sum it over slices of the batch.
  bool has_own_gradient(const GraphParameter& parameter) const {
    bool written = false;
    for (const Node& node : step_.graph.nodes) {
      if (parameter.gradient < 0 || !contains(node.outputs, parameter.gradient)) continue;
      const auto* convolution = std::get_if<Conv2dBackwardWeights>(&node.op);
      if (convolution != nullptr && convolution->problem.piece > 0) return false;
      written = true;
    }
    return written;
  }

  void append(Node node, kernels::Kernel kernel) {
    step_.graph.nodes.push_back(std::move(node));
    step_.kernels.push_back(std::move(kernel));
  }

  void append_update(const GraphParameter& parameter, const std::string& layer) {
    step_.graph.tensors[index(parameter.gradient)].role = TensorRole::activation;
    OptimizerUpdate op{options_.optimizer};
    op.problem.segments = {segment_of(parameter, step_.descs[index(parameter.tensor)], 0)};
    Node node{layer, op, Phase::backward, {parameter.tensor, parameter.gradient}, {}};
    const std::string& name = parameter.spec.name;
    for (int state = 0; state < kernels::optimizer_states(op.problem); ++state)
      node.inputs.push_back(new_state(parameter, fmt::format("{}.optimizer{}", name, state)));
    if (op.problem.averages) node.inputs.push_back(new_state(parameter, name + ".ema"));
    if (parameter.copy >= 0) node.outputs.push_back(parameter.copy);
    append(std::move(node), make_update_kernel(op.problem, options_.backend, op.problem.segments[0].count,
                                               parameter.copy >= 0));
  }

  TensorId new_state(const GraphParameter& parameter, std::string name) {
    Tensor tensor = step_.graph.tensors[index(parameter.tensor)];
    tensor.name = std::move(name);
    tensor.role = TensorRole::optimizer_state;
    tensor.same_layout_as = parameter.tensor;
    step_.graph.tensors.push_back(std::move(tensor));
    step_.descs.push_back(step_.descs[index(parameter.tensor)]);
    return static_cast<TensorId>(step_.graph.tensors.size()) - 1;
  }

  CompiledGraph step_;
  const StepOptions& options_;
  // For each node: the parameters that are updated after it.
  std::vector<std::vector<const GraphParameter*>> updates_after_;
};

}  // namespace

bool updates_early(const StepOptions& options, int replicas) {
  return replicas == 1 && !options.accumulate && !options.clip &&
         options.optimizer.kind != kernels::OptimizerKind::lars;
}

CompiledGraph with_early_updates(CompiledGraph step, const StepOptions& options, int reuse_delay) {
  return EarlyUpdates(std::move(step), options).run(reuse_delay);
}

}  // namespace convoy::app
