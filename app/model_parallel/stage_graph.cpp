#include "app/model_parallel/stage_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <utility>

namespace convoy::app {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

Transfer::Action end_of(ProgramStep::Action action) {
  switch (action) {
    case ProgramStep::Action::send_begin:
      return Transfer::Action::send_begin;
    case ProgramStep::Action::send_finish:
      return Transfer::Action::send_finish;
    case ProgramStep::Action::receive_begin:
      return Transfer::Action::receive_begin;
    case ProgramStep::Action::receive_finish:
      return Transfer::Action::receive_finish;
    case ProgramStep::Action::run:
      break;
  }
  throw std::logic_error("internal error: a run of a node was taken for a transfer");
}

Node transfer_node(const StepGraph& graph, const CutTensor& cut, ProgramStep step) {
  const bool sends =
      step.action == ProgramStep::Action::send_begin || step.action == ProgramStep::Action::send_finish;
  const Node& producer = graph.nodes[at(cut.producer)];
  Node node;
  node.layer = producer.layer;
  node.op = Transfer{end_of(step.action), step.index, sends ? cut.to : cut.from};
  node.phase = producer.phase;
  (sends ? node.inputs : node.outputs).push_back(cut.tensor);
  return node;
}

// Removes from the graph the parameters, states and inputs that no node of the stage uses.
void keep_touched(StepGraph& graph) {
  std::vector<bool> touched(graph.tensors.size(), false);
  for (const Node& node : graph.nodes)
    for (const auto* operands : {&node.inputs, &node.outputs})
      for (const TensorId id : *operands) touched[at(id)] = true;
  std::erase_if(graph.parameters, [&](const GraphParameter& parameter) {
    return std::ranges::none_of(std::array{parameter.tensor, parameter.gradient, parameter.copy},
                                [&](TensorId id) { return id >= 0 && touched[at(id)]; });
  });
  std::erase_if(graph.states, [&](const auto& state) { return !touched[at(state.tensor)]; });
  for (TensorId* id : {&graph.images, &graph.labels, &graph.transforms, &graph.metrics, &graph.mix_of_images,
                       &graph.mix_of_labels})
    if (*id >= 0 && !touched[at(*id)]) *id = -1;
}

}  // namespace

CompiledGraph stage_of_step(const CompiledGraph& whole, const StagePrograms& programs, int stage,
                            int reuse_delay) {
  StepGraph graph = whole.graph;
  graph.nodes.clear();
  std::vector<kernels::Kernel> kernels;
  for (const ProgramStep& step : programs.stages[at(stage)]) {
    if (step.action == ProgramStep::Action::run) {
      graph.nodes.push_back(whole.graph.nodes[at(step.index)]);
      kernels.push_back(whole.kernels[at(step.index)]);
    } else {
      graph.nodes.push_back(transfer_node(whole.graph, programs.transfers[at(step.index)], step));
      kernels.emplace_back();
    }
  }
  keep_touched(graph);
  return assign_buffers(std::move(graph), whole.descs, std::move(kernels), reuse_delay);
}

CompiledSteps stage_of_steps(const CompiledSteps& whole, const StepPlacement& placement, int stage,
                             const StepOptions& options) {
  const StepGraph& train = whole.train->graph;
  if (placement.stage_of.size() != train.nodes.size())
    throw std::runtime_error(fmt::format(
        "--partition: this rank compiles the step to {} operations, rank 0 to {}; ranks must have processors "
        "of one kind",
        train.nodes.size(), placement.stage_of.size()));
  CompiledGraph own = stage_of_step(
      *whole.train,
      make_stage_programs(find_dependences(train), placement.stage_of, placement.stages, placement.times),
      stage, stage_reuse_delay(options));
  const StepGraph& evaluate = whole.evaluate.graph;
  CompiledGraph own_evaluation = stage_of_step(
      whole.evaluate,
      make_stage_programs(find_dependences(evaluate), place_evaluation(evaluate, train, placement.stage_of),
                          placement.stages, sequential_times(evaluate)),
      stage);
  return {std::move(own), std::move(own_evaluation), options};
}

std::vector<int> place_evaluation(const StepGraph& evaluate, const StepGraph& train,
                                  const std::vector<int>& stage_of_train) {
  std::map<std::string, int> stage_of_tensor, stage_of_layer;
  for (int i = 0; i < std::ssize(train.nodes); ++i) {
    const Node& node = train.nodes[at(i)];
    if (node.phase == Phase::forward) stage_of_layer.try_emplace(node.layer, stage_of_train[at(i)]);
    for (const auto* operands : {&node.inputs, &node.outputs})
      for (const TensorId id : *operands)
        if (const std::string name = lasting_name(train, id); !name.empty())
          stage_of_tensor.try_emplace(name, stage_of_train[at(i)]);
  }
  std::vector<int> stage_of;
  for (const Node& node : evaluate.nodes) {
    int stage = stage_of_layer.at(node.layer);
    for (const auto* operands : {&node.inputs, &node.outputs})
      for (const TensorId id : *operands)
        if (const std::string name = lasting_name(evaluate, id); !name.empty())
          stage = stage_of_tensor.at(name);
    stage_of.push_back(stage);
  }
  return stage_of;
}

}  // namespace convoy::app
