// Converts the partitioner's placement of a step into what the ranks need: the order of each
// stage's tasks, expected times, and a short summary of each stage.
#pragma once

#include <vector>

#include "app/model_parallel/plan.h"
#include "app/model_parallel/stage_programs.h"
#include "partition/simulation/simulator.h"

namespace convoy::app {

// Moves the optimizer updates of every stage to the end of the stage's order, because a stage runs
// them as one kernel after all operations. Tasks below `nodes` are operations. The other tasks are
// optimizer updates.
std::vector<std::vector<partition::NodeIndex>> updates_last(
    std::vector<std::vector<partition::NodeIndex>> order, int nodes);

// Returns when operations are expected to start and to finish. Also returns when a sender can reuse
// the buffer of a tensor that it sends, which is when the receiver has taken the tensor. A receiver
// takes tensors only between two of its operations.
ExpectedTimes expected_times(const partition::Simulation& simulation,
                             const std::vector<partition::DeviceIndex>& device_of, int nodes);

// Sets plan.transfers, plan.cut_bytes, and the operations, parameters and layers of each stage.
void summarise_stages(const CompiledGraph& whole, const StagePrograms& programs, PartitionPlan& plan);

}  // namespace convoy::app
