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

bool uses(const Node& node, TensorId tensor) {
  return std::ranges::find(node.inputs, tensor) != node.inputs.end() ||
         std::ranges::find(node.outputs, tensor) != node.outputs.end();
}

class EarlyUpdates {
 public:
  EarlyUpdates(CompiledGraph step, const StepOptions& options) : step_(std::move(step)), options_(options) {}

  CompiledGraph run(int reuse_delay) {
    updates_after_.resize(step_.graph.nodes.size());
    for (const GraphParameter& parameter : step_.graph.parameters)
      if (const int last = last_use(parameter); is_large(parameter) && can_update_after(parameter, last))
        updates_after_[static_cast<std::size_t>(last)].push_back(&parameter);
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

  int last_use(const GraphParameter& parameter) const {
    int last = -1;
    for (int i = 0; i < std::ssize(step_.graph.nodes); ++i)
      for (const TensorId tensor : {parameter.tensor, parameter.copy, parameter.gradient})
        if (tensor >= 0 && uses(step_.graph.nodes[static_cast<std::size_t>(i)], tensor)) last = i;
    return last;
  }

  bool can_update_after(const GraphParameter& parameter, int last) const {
    const auto writes = [&](const Node& node) {
      return std::ranges::find(node.outputs, parameter.gradient) != node.outputs.end();
    };
    if (parameter.gradient < 0 || last < 0 || std::ranges::none_of(step_.graph.nodes, writes)) return false;
    return std::ranges::none_of(step_.graph.nodes, [&](const Node& node) {
      const auto* sum = std::get_if<Conv2dBackwardWeights>(&node.op);
      return sum != nullptr && sum->problem.piece > 0 && uses(node, parameter.gradient);
    });
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
