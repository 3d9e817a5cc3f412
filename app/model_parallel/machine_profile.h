// Describes the machine that a planned step runs on: the links between stages, and the processors,
// caches and memory that the ranks of one host share. A replica is a group of ranks that computes
// whole steps, one stage per rank (RankGroups, compile/step_options.h).
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
  std::vector<std::vector<LinkCost>> links;  // links[a][b] is the link between the stages a and b
  // Free bytes of the device with the least free memory; 0 if there are no devices.
  std::int64_t device_bytes = 0;
  // The cost of an all-reduce over the replicas: milliseconds per all-reduce and per byte.
  double reduce_ms = 0, reduce_ms_per_byte = 0;
  SharedProcessors processors;  // only set on rank 0
  // `slowdown` is the factor by which the processor time of each node grows while the other ranks
  // of the host run. `update_slowdown` is this factor for each stage's optimizer update.
  std::vector<double> slowdown, update_slowdown;
};

// Measures the links and how ranks share processors. `threads` is the number of threads of each
// rank. Collective over `world`, whose ranks are numbered replica after replica. Each replica has
// one rank per stage.
MachineProfile measure_machine(const comm::Communicator& world, const RankGroups& groups,
                               kernels::Backend backend, int threads);

partition::Machine describe_machine(const std::vector<std::vector<LinkCost>>& links);

// Returns what each instruction of the programs costs on this machine, for simulate_programs().
// `tasks` are the result of make_step_tasks() with times that were measured while the other ranks
// waited. `tensors` is indexed by TensorId.
ProgramCosts costs_of_programs(const MachineProfile& profile, const StagePrograms& programs,
                               const partition::TaskGraph& tasks,
                               const std::vector<partition::DeviceIndex>& stage_of,
                               const std::vector<kernels::TensorDesc>& tensors);

}  // namespace convoy::app
