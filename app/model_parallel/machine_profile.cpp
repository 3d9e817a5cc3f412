#include "app/model_parallel/machine_profile.h"

#include "comm/placement/rank_placement.h"
#include "kernels/device/device_memory.h"

namespace convoy::app {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

}  // namespace

MachineProfile measure_machine(const comm::Communicator& world, const RankGroups& groups,
                               kernels::Backend backend, int threads) {
  MachineProfile profile;
  profile.links = measure_links(*groups.stages, backend, groups.stages->size());
  if (groups.replicas->size() > 1) {
    // A GPU sums gradients over the replicas during the backward pass, so only the fixed cost of an
    // all-reduce counts, and the cost per byte stays 0.
    if (backend == kernels::Backend::cuda) {
      profile.reduce_ms = measure_small_sum(*groups.replicas);
    } else {
      const LinkCost link = measure_links(*groups.replicas, backend, 2)[0][1];
      profile.reduce_ms = 2 * link.latency_ms;
      profile.reduce_ms_per_byte = 2 / link.bytes_per_ms;
    }
  }
  const int stages = groups.stages->size();
  if (backend == kernels::Backend::cuda) {  // ranks share no GPU, so processors are separate
    profile.device_bytes =
        world.all_reduce(kernels::free_gpu_memory(), comm::ReduceOp::min, "memory of the devices");
    profile.processors = separate_processors(stages);
    return profile;
  }
  const std::vector<comm::RankPlacement> ranks = comm::gather_placement(world);
  if (world.rank() == 0) profile.processors = share_processors(ranks, stages, threads);
  return profile;
}

partition::Machine describe_machine(const std::vector<std::vector<LinkCost>>& links) {
  const int stages = static_cast<int>(links.size());
  partition::Machine machine = partition::Machine::uniform(stages, {});
  for (int a = 0; a < stages; ++a)
    for (int b = 0; b < stages; ++b)
      if (a != b)
        machine.set_link(a, b,
                         {static_cast<partition::Nanoseconds>(links[at(a)][at(b)].latency_ms * 1e6),
                          links[at(a)][at(b)].bytes_per_ms * 1e-6});
  return machine;
}

ProgramCosts costs_of_programs(const MachineProfile& profile, const StagePrograms& programs,
                               const partition::TaskGraph& tasks,
                               const std::vector<partition::DeviceIndex>& stage_of,
                               const std::vector<kernels::TensorDesc>& tensors) {
  ProgramCosts costs;
  costs.processors = profile.processors;
  for (const double slowdown : profile.update_slowdown) costs.updates.push_back({0, slowdown});
  const auto nodes = static_cast<partition::NodeIndex>(profile.slowdown.size());
  for (partition::NodeIndex task = 0; task < tasks.node_count(); ++task) {
    const double ms = static_cast<double>(tasks.time(task)) * 1e-6;
    if (task < nodes)
      costs.nodes.push_back({ms, profile.slowdown[at(task)]});
    else
      costs.updates[at(stage_of[at(task)])].ms += ms;
  }
  for (const CutTensor& cut : programs.transfers) {
    const LinkCost& link = profile.links[at(cut.from)][at(cut.to)];
    const double moving = static_cast<double>(tensors[at(cut.tensor)].bytes()) / link.bytes_per_ms;
    const double background = link.latency_ms + (1 - link.receiver_share) * moving;
    costs.transfers.push_back({background, link.receiver_share * moving, link.in_turn ? background : 0});
  }
  return costs;
}

}  // namespace convoy::app
