// Writes a partition plan as text, which rank 0 broadcasts, and reads it back.
#pragma once

#include <string>

#include "app/model_parallel/plan.h"

namespace convoy::app {

std::string write_plan(const PartitionPlan& plan);
PartitionPlan read_plan(const std::string& text);

}  // namespace convoy::app
