#include "app/model_parallel/placement_summary.h"

#include <algorithm>

#include "app/model_parallel/stage_graph.h"

namespace convoy::app {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

// Returns the first and the last layer of a stage, in the network's order, as "first … last".
std::string first_and_last_layer(const StepGraph& graph, const std::vector<int>& stage_of, int stage) {
  std::vector<std::string> layers;
  for (int node = 0; node < std::ssize(graph.nodes); ++node) {
    const Node& of = graph.nodes[at(node)];
    if (stage_of[at(node)] == stage && of.phase == Phase::forward &&
        (layers.empty() || layers.back() != of.layer))
      layers.push_back(of.layer);
  }
  if (layers.empty()) return {};
  return layers.size() == 1 ? layers.front() : layers.front() + " … " + layers.back();
}

}  // namespace

std::vector<std::vector<partition::NodeIndex>> updates_last(
    std::vector<std::vector<partition::NodeIndex>> order, int nodes) {
  for (auto& of_stage : order)
    std::stable_partition(of_stage.begin(), of_stage.end(),
                          [&](partition::NodeIndex task) { return task < nodes; });
  return order;
}

ExpectedTimes expected_times(const partition::Simulation& simulation,
                             const std::vector<partition::DeviceIndex>& device_of, int nodes) {
  ExpectedTimes times;
  times.start.assign(simulation.start.begin(), simulation.start.begin() + nodes);
  times.finish.assign(simulation.finish.begin(), simulation.finish.begin() + nodes);
  for (const partition::SimulatedTransfer& transfer : simulation.transfers) {
    partition::Nanoseconds released = transfer.arrival;
    for (int node = 0; node < nodes; ++node)
      if (device_of[at(node)] == transfer.to && simulation.start[at(node)] <= transfer.arrival)
        released = std::max(released, simulation.finish[at(node)]);
    times.released[{transfer.producer, transfer.to}] = released;
  }
  return times;
}

void summarise_stages(const CompiledGraph& whole, const StagePrograms& programs, PartitionPlan& plan) {
  plan.transfers = static_cast<int>(programs.transfers.size());
  for (const CutTensor& cut : programs.transfers)
    plan.cut_bytes += static_cast<std::int64_t>(whole.descs[at(cut.tensor)].bytes());
  const std::vector<int>& stage_of = plan.placement.stage_of;
  for (int stage = 0; stage < std::ssize(plan.stages); ++stage) {
    StageSummary& summary = plan.stages[at(stage)];
    const CompiledGraph steps = stage_of_step(whole, programs, stage);
    for (const GraphParameter& parameter : steps.graph.parameters)
      summary.parameters += parameter.spec.parameter_count();
    summary.operations = static_cast<int>(std::count(stage_of.begin(), stage_of.end(), stage));
    summary.layers = first_and_last_layer(whole.graph, stage_of, stage);
  }
}

}  // namespace convoy::app
