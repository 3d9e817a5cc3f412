#include "app/model_parallel/placement_summary.h"

#include <algorithm>

#include "app/model_parallel/stage_graph.h"

namespace convoy::app {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

// In the order of the network.
std::string first_and_last_layer(const StepGraph& graph, const std::vector<int>& part_of, int part) {
  std::vector<std::string> layers;
  for (int node = 0; node < std::ssize(graph.nodes); ++node) {
    const Node& of = graph.nodes[at(node)];
    if (part_of[at(node)] == part && of.phase == Phase::forward &&
        (layers.empty() || layers.back() != of.layer))
      layers.push_back(of.layer);
  }
  if (layers.empty()) return {};
  return layers.size() == 1 ? layers.front() : layers.front() + " … " + layers.back();
}

}  // namespace

std::vector<std::vector<partition::NodeIndex>> updates_last(
    std::vector<std::vector<partition::NodeIndex>> order, int nodes) {
  for (auto& of_part : order)
    std::stable_partition(of_part.begin(), of_part.end(),
                          [&](partition::NodeIndex task) { return task < nodes; });
  return order;
}

ExpectedTimes expected_times(const partition::Simulation& simulation,
                             const std::vector<partition::DeviceIndex>& device_of, int nodes) {
  ExpectedTimes times;
  times.start.assign(simulation.start.begin(), simulation.start.begin() + nodes);
  times.finish.assign(simulation.finish.begin(), simulation.finish.begin() + nodes);
  for (const partition::Transfer& transfer : simulation.transfers) {
    partition::Nanoseconds released = transfer.arrival;
    for (int node = 0; node < nodes; ++node)
      if (device_of[at(node)] == transfer.to && simulation.start[at(node)] <= transfer.arrival)
        released = std::max(released, simulation.finish[at(node)]);
    times.released[{transfer.producer, transfer.to}] = released;
  }
  return times;
}

void summarise_parts(const CompiledGraph& whole, const RankPrograms& programs, PartitionPlan& plan) {
  plan.transfers = static_cast<int>(programs.transfers.size());
  for (const CutTensor& cut : programs.transfers)
    plan.cut_bytes += static_cast<std::int64_t>(whole.descs[at(cut.tensor)].bytes());
  const std::vector<int>& part_of = plan.placement.part_of;
  for (int part = 0; part < std::ssize(plan.parts); ++part) {
    PartSummary& summary = plan.parts[at(part)];
    const CompiledGraph steps = part_of_step(whole, programs, part);
    for (const TrainableParameter& parameter : steps.graph.parameters)
      summary.parameters += parameter.spec.shape.elements();
    summary.operations = static_cast<int>(std::count(part_of.begin(), part_of.end(), part));
    summary.layers = first_and_last_layer(whole.graph, part_of, part);
  }
}

}  // namespace convoy::app
