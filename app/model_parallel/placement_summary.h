// Converts a simulated placement of a step's tasks for the ranks, into orders, expected times and a
// short summary of each stage.
#pragma once

#include <vector>

#include "app/model_parallel/plan.h"
#include "app/model_parallel/stage_programs.h"
#include "partition/simulation/simulator.h"

namespace convoy::app {

// Moves the updates of every stage to the end of its order, because a program runs one optimizer
// kernel after all operations. The first `nodes` tasks are the step's operations; the others are
// its updates.
std::vector<std::vector<partition::NodeIndex>> updates_last(
    std::vector<std::vector<partition::NodeIndex>> order, int nodes);

// Returns when operations are expected to start and to finish, and when a sender can reuse the
// buffer of a tensor. It can do so when the receiver has taken the tensor, which happens between
// two of the receiver's operations.
ExpectedTimes expected_times(const partition::Simulation& simulation,
                             const std::vector<partition::DeviceIndex>& device_of, int nodes);

// Sets plan.transfers, plan.cut_bytes, and the operations, parameters and layers of each stage.
void summarise_stages(const CompiledGraph& whole, const StagePrograms& programs, PartitionPlan& plan);

}  // namespace convoy::app
