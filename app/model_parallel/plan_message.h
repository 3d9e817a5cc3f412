// Converts placements and plans to texts, which rank 0 broadcasts, and back.
#pragma once

#include <string>

#include "app/model_parallel/plan.h"

namespace convoy::app {

std::string write_placement(const StepPlacement& placement);
StepPlacement read_placement(const std::string& text);

std::string write_plan(const PartitionPlan& plan);
PartitionPlan read_plan(const std::string& text);

}  // namespace convoy::app
