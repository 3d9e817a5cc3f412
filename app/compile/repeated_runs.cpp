#include "app/compile/repeated_runs.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "app/graph/recomputed.h"

namespace convoy::app {
namespace {

constexpr std::int64_t kAlignment = 256;  // of buffers (partition::assign_offsets)

std::vector<int> all_positions(const std::vector<TensorId>& tensors) {
  std::vector<int> positions(tensors.size());
  std::iota(positions.begin(), positions.end(), 0);
  return positions;
}

class Repetition {
 public:
  Repetition(const CompiledGraph& step, kernels::Backend backend)
      : step_(step), backend_(backend), graph_(step.graph), descs_(step.descs), newest_(step.descs.size()) {
    graph_.nodes.clear();
    std::iota(newest_.begin(), newest_.end(), 0);
  }

  CompiledGraph run(const partition::StepSchedule& schedule, int reuse_delay) {
    std::vector<bool> ran(step_.graph.nodes.size(), false);
    for (const partition::StepRun& run : schedule) {
      const auto number = static_cast<std::size_t>(run.operation);
      if (ran[number])
        repeat(number, run.outputs);
      else
        append_first(number);
      ran[number] = true;
    }
    return assign_buffers(std::move(graph_), std::move(descs_), std::move(kernels_), reuse_delay);
  }

 private:
  Node reading_newest(std::size_t number) const {
    Node node = step_.graph.nodes[number];
    for (TensorId& input : node.inputs) input = newest_[static_cast<std::size_t>(input)];
    return node;
  }

  // An operation that updates a tensor in place writes the newest content, too.
  void append_first(std::size_t number) {
    Node node = reading_newest(number);
    for (TensorId& output : node.outputs) output = newest_[static_cast<std::size_t>(output)];
    graph_.nodes.push_back(std::move(node));
    kernels_.push_back(step_.kernels[number]);
  }

  void repeat(std::size_t number, const std::vector<int>& wanted_tensors) {
    const Node& first = step_.graph.nodes[number];
    std::vector<int> wanted;
    for (std::size_t i = 0; i < first.outputs.size(); ++i)
      if (std::ranges::find(wanted_tensors, first.outputs[i]) != wanted_tensors.end())
        wanted.push_back(static_cast<int>(i));
    std::optional<Recomputed> again = recomputed(first, wanted);
    if (!again) throw std::logic_error("a plan repeats an operation that runs only once");
    Node node = reading_newest(number);
    node.phase = Phase::backward;
    node.recompute = true;
    node.op = std::move(again->op);
    node.outputs.clear();
    for (const int position : again->outputs) {
      const TensorId tensor = first.outputs[static_cast<std::size_t>(position)];
      const TensorId copy = copy_of(tensor);
      node.outputs.push_back(copy);
      if (std::ranges::find(wanted, position) != wanted.end())
        newest_[static_cast<std::size_t>(tensor)] = copy;
    }
    kernels_.push_back(again->same ? step_.kernels[number] : kernel_of(node));
    graph_.nodes.push_back(std::move(node));
  }

  TensorId copy_of(TensorId tensor) {
    Tensor copy = graph_.tensors[static_cast<std::size_t>(tensor)];
    copy.name += "/again";
    copy.partner = tensor;
    graph_.tensors.push_back(std::move(copy));
    descs_.push_back(descs_[static_cast<std::size_t>(tensor)]);
    return static_cast<TensorId>(graph_.tensors.size()) - 1;
  }

  kernels::Kernel kernel_of(const Node& node) const {
    kernels::KernelRequest request;
    for (const TensorId id : node.inputs) request.inputs.push_back(descs_[static_cast<std::size_t>(id)]);
    for (const TensorId id : node.outputs) request.outputs.push_back(descs_[static_cast<std::size_t>(id)]);
    return make_kernel(node.op, backend_, request);
  }

  const CompiledGraph& step_;
  const kernels::Backend backend_;
  StepGraph graph_;
  std::vector<kernels::TensorDesc> descs_;
  std::vector<kernels::Kernel> kernels_;
  std::vector<TensorId> newest_;  // by tensor of the step: the one with its newest content
};

}  // namespace

partition::StepModel step_model(const CompiledGraph& step, const std::vector<double>& node_ms) {
  partition::StepModel model;
  model.alignment = kAlignment;
  for (std::size_t id = 0; id < step.descs.size(); ++id)
    model.tensor_bytes.push_back(step.graph.tensors[id].role == TensorRole::activation
                                     ? static_cast<std::int64_t>(step.descs[id].bytes())
                                     : 0);
  for (std::size_t i = 0; i < step.graph.nodes.size(); ++i) {
    const Node& node = step.graph.nodes[i];
    partition::StepOperation operation;
    operation.ms = node_ms[i];
    operation.workspace = static_cast<std::int64_t>(step.kernels[i].workspace_bytes);
    operation.inputs = node.inputs;
    operation.outputs = node.outputs;
    operation.backward = node.phase == Phase::backward;
    for (const auto& [input, output] : step.kernels[i].in_place)
      operation.in_place.emplace_back(node.inputs[static_cast<std::size_t>(input)],
                                      node.outputs[static_cast<std::size_t>(output)]);
    if (!operation.backward)
      if (const auto again = recomputed(node, all_positions(node.outputs)))
        for (const int position : again->outputs)
          operation.again.push_back(node.outputs[static_cast<std::size_t>(position)]);
    model.operations.push_back(std::move(operation));
  }
  return model;
}

CompiledGraph with_schedule(const CompiledGraph& step, const partition::StepSchedule& schedule,
                            kernels::Backend backend, int reuse_delay) {
  return Repetition(step, backend).run(schedule, reuse_delay);
}

}  // namespace convoy::app
