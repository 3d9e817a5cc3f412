// Translates a simulated placement of a step's tasks for the ranks: orders, expected times, and a
// short summary of each stage.
#pragma once

#include <vector>

#include "app/model_parallel/plan.h"
#include "app/model_parallel/stage_programs.h"
#include "partition/simulation/simulator.h"

namespace convoy::app {

// Moves the updates of every stage to the end of its order, as the programs run one optimizer
// kernel after all operations. The first `nodes` tasks are the step's operations, the others its
// updates.
std::vector<std::vector<partition::NodeIndex>> updates_last(
    std::vector<std::vector<partition::NodeIndex>> order, int nodes);

// Returns when operations start and finish, and when a receiver has taken a tensor. A receiver
// takes a tensor between two operations.
ExpectedTimes expected_times(const partition::Simulation& simulation,
                             const std::vector<partition::DeviceIndex>& device_of, int nodes);

// Fills in plan.transfers, plan.cut_bytes, and the operations, parameters and layers of each stage.
void summarise_stages(const CompiledGraph& whole, const StagePrograms& programs, PartitionPlan& plan);

}  // namespace convoy::app
