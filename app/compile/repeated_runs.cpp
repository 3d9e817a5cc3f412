#include "app/compile/repeated_runs.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "app/graph/recomputed.h"

namespace convoy::app {
namespace {

constexpr std::int64_t kAlignment = 256;  // buffers start at multiples of these bytes

std::vector<int> all_positions(const std::vector<TensorId>& tensors) {
  std::vector<int> positions(tensors.size());
  std::iota(positions.begin(), positions.end(), 0);
  return positions;
}

class Repetition {
 public:
  Repetition(const CompiledGraph& step, kernels::Backend backend)
      : step_(step),
        backend_(backend),
        graph_(step.graph),
        descs_(step.descs),
        newest_(step.descs.size()),
        on_host_(step.descs.size(), -1) {
    graph_.nodes.clear();
    std::iota(newest_.begin(), newest_.end(), 0);
  }

  CompiledGraph run(const partition::StepSchedule& schedule, int reuse_delay) {
    std::vector<bool> ran(step_.graph.nodes.size(), false);
    for (const partition::StepRun& run : schedule) {
      if (!run.computes()) {
        copy(run);
        continue;
      }
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

  // Appends the first run of an operation. If a tensor was computed again or copied back before,
  // the operation reads, or updates in place, the newest copy of the tensor.
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
      const bool updates = std::ranges::find(first.inputs, tensor) != first.inputs.end();
      const TensorId copy = updates ? newest_[static_cast<std::size_t>(tensor)] : copy_of(tensor);
      node.outputs.push_back(copy);
      if (std::ranges::find(wanted, position) != wanted.end())
        newest_[static_cast<std::size_t>(tensor)] = copy;
    }
    kernels_.push_back(again->same ? step_.kernels[number] : kernel_of(node));
    graph_.nodes.push_back(std::move(node));
  }

  void copy(const partition::StepRun& run) {
    using Kind = partition::StepRun::Kind;
    using Action = HostCopy::Action;
    const TensorId tensor = run.tensor();
    TensorId& newest = newest_[static_cast<std::size_t>(tensor)];
    TensorId& host = on_host_[static_cast<std::size_t>(tensor)];
    if (run.kind == Kind::copy_out) {
      host = copy_of(tensor, "/host");
      graph_.tensors[static_cast<std::size_t>(host)].role = TensorRole::host;
      append_copy(tensor, Action::out_begin, {newest}, {host});
    } else if (run.kind == Kind::copied_out) {
      append_copy(tensor, Action::out_finish, {newest}, {});
    } else {
      newest = copy_of(tensor, "/back");
      append_copy(tensor, Action::back, {host}, {newest});
    }
  }

  // Appends a copy to or from host memory. The node gets the name of the layer that computes the
  // tensor.
  void append_copy(TensorId tensor, HostCopy::Action action, std::vector<TensorId> inputs,
                   std::vector<TensorId> outputs) {
    const auto maker = std::ranges::find_if(step_.graph.nodes, [&](const Node& node) {
      return std::ranges::find(node.outputs, tensor) != node.outputs.end();
    });
    Node node{maker->layer, HostCopy{action},
              action == HostCopy::Action::back ? Phase::backward : Phase::forward, std::move(inputs),
              std::move(outputs)};
    kernels_.push_back(kernel_of(node));
    graph_.nodes.push_back(std::move(node));
  }

  TensorId copy_of(TensorId tensor, const char* suffix = "/again") {
    Tensor copy = graph_.tensors[static_cast<std::size_t>(tensor)];
    copy.name += suffix;
    copy.same_layout_as = tensor;
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
  // For each tensor of the step: the tensor of the new graph that holds its content now.
  std::vector<TensorId> newest_;
  // For each tensor of the step: its copy in host memory; -1 if there is none.
  std::vector<TensorId> on_host_;
};

}  // namespace

namespace {

// Returns for each tensor whether it may be copied to host memory until backward reads it. Exactly
// one node must write the tensor, in forward: otherwise the copy could become outdated.
std::vector<char> copyable_tensors(const CompiledGraph& step) {
  std::vector<int> writes(step.descs.size(), 0);
  std::vector<char> forward(step.descs.size(), 0);
  for (const Node& node : step.graph.nodes) {
    for (const TensorId id : node.outputs) {
      ++writes[static_cast<std::size_t>(id)];
      forward[static_cast<std::size_t>(id)] = node.phase == Phase::forward;
    }
    if (node.is<AllReduce>()) writes[static_cast<std::size_t>(node.inputs[0])] += 2;
    if (node.is<Transfer>())
      for (const auto* operands : {&node.inputs, &node.outputs})
        for (const TensorId id : *operands) writes[static_cast<std::size_t>(id)] += 2;
  }
  std::vector<char> copyable;
  for (std::size_t id = 0; id < step.descs.size(); ++id)
    copyable.push_back(step.graph.tensors[id].role == TensorRole::activation && writes[id] == 1 &&
                       forward[id] && static_cast<TensorId>(id) != step.graph.probabilities);
  return copyable;
}

}  // namespace

partition::StepModel step_model(const CompiledGraph& step, const std::vector<double>& node_ms) {
  partition::StepModel model;
  model.alignment = kAlignment;
  for (std::size_t id = 0; id < step.descs.size(); ++id)
    model.tensor_bytes.push_back(step.graph.tensors[id].role == TensorRole::activation
                                     ? static_cast<std::int64_t>(step.descs[id].bytes())
                                     : 0);
  model.copyable = copyable_tensors(step);
  // The planner keeps either all tensors of a family for backward or none of them. The slices of a
  // tensor form a family.
  for (std::size_t id = 0; id < step.descs.size(); ++id) {
    const TensorId whole = step.graph.tensors[id].slice_of;
    model.family.push_back(whole >= 0 ? whole : static_cast<int>(id));
  }
  for (std::size_t i = 0; i < step.graph.nodes.size(); ++i) {
    const Node& node = step.graph.nodes[i];
    partition::StepOperation operation;
    operation.ms = node_ms[i];
    operation.workspace = static_cast<std::int64_t>(step.kernels[i].workspace_bytes);
    operation.inputs = node.inputs;
    operation.outputs = node.outputs;
    operation.backward = node.phase == Phase::backward;
    operation.joined = i > 0 && node.slice >= 0 && step.graph.nodes[i - 1].slice >= 0;
    operation.in_place = overwritten_inputs(node, step.kernels[i]);
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
