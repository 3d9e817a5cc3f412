// What a simulated placement of a step's tasks means for the ranks: orders, expected times, and each stage in a few words.
#pragma once

#include <vector>

#include "app/model_parallel/plan.h"
#include "app/model_parallel/stage_programs.h"
#include "partition/simulation/simulator.h"

namespace convoy::app {

// The first `nodes` tasks are the step's operations, those behind them its updates. As the programs have it: one optimizer
// kernel at the end.
std::vector<std::vector<partition::NodeIndex>> updates_last(
    std::vector<std::vector<partition::NodeIndex>> order, int nodes);

// When operations start and finish, and when a receiver takes a tensor: between two operations.
ExpectedTimes expected_times(const partition::Simulation& simulation,
                             const std::vector<partition::DeviceIndex>& device_of, int nodes);

// Fills in transfers, cut bytes, and of each stage operations, parameters and layers.
void summarise_stages(const CompiledGraph& whole, const StagePrograms& programs, PartitionPlan& plan);

}  // namespace convoy::app
