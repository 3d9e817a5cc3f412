// The machine that a planned step runs on: the links between stages, and the processors, caches and
// memory that the ranks of one host share.
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
  std::vector<std::vector<LinkCost>> links;      // between the stages
  std::int64_t device_bytes = 0;                 // free memory of the fullest device; 0: no device
  double reduce_ms = 0, reduce_ms_per_byte = 0;  // cost of every all-reduce over the replicas
  SharedProcessors processors;                   // only set on rank 0
  // By node, and by stage for its update: how many times as long a processor works while the host's
  // other ranks run as well.
  std::vector<double> slowdown, update_slowdown;
};

// Measures the links and the sharing of processors. `threads`: the number of threads of each rank.
// Collective over `world`, whose ranks are numbered replica after replica, each with one rank a
// stage.
MachineProfile measure_machine(const comm::Communicator& world, const RankGroups& groups,
                               kernels::Backend backend, int threads);

partition::Machine describe_machine(const std::vector<std::vector<LinkCost>>& links);

// Returns the costs of the programs' instructions on this machine.
// `tasks` are those of make_step_tasks(), with the times of a rank that runs alone. `tensors`: by
// TensorId.
ProgramCosts costs_of_programs(const MachineProfile& profile, const StagePrograms& programs,
                               const partition::TaskGraph& tasks,
                               const std::vector<partition::DeviceIndex>& stage_of,
                               const std::vector<kernels::TensorDesc>& tensors);

}  // namespace convoy::app
