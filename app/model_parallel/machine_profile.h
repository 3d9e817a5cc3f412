// What a planned step runs in: the links between the stages, and the processors, caches and memory that ranks of one host
// share.
#pragma once

#include <cstdint>
#include <vector>

#include "app/execute/session.h"
#include "app/model_parallel/simulation.h"
#include "app/timing/link_costs.h"
#include "comm/communicator.h"
#include "partition/graph/task_graph.h"
#include "partition/simulation/machine.h"

namespace convoy::app {

struct MachineProfile {
  std::vector<std::vector<LinkCost>> links;  // between the stages
  std::int64_t device_bytes = 0;             // that the fullest device has free; 0: no device
  double reduce_ms = 0, reduce_ms_per_byte = 0;
  SharedProcessors processors;  // needed at rank 0 alone
  // Of every operation, and of every stage's update: how much more a processor works for it beside the host's other ranks.
  std::vector<double> slowdown, update_slowdown;
};

// Collective over `world`, whose ranks are replica after replica, each as many as there are stages; `threads` of each rank.
MachineProfile measure_machine(const comm::Communicator& world, const RankGroups& groups,
                               kernels::Backend backend, int threads);

partition::Machine describe_machine(const std::vector<std::vector<LinkCost>>& links);

// What the programs' instructions take here. `tasks` are those of make_step_tasks, their times those of a rank alone;
// `bytes` of every tensor.
ProgramCosts costs_of_programs(const MachineProfile& profile, const StagePrograms& programs,
                               const partition::TaskGraph& tasks,
                               const std::vector<partition::DeviceIndex>& stage_of,
                               const std::vector<kernels::TensorDesc>& tensors);

}  // namespace convoy::app
