// A partition plan as text, for the way from rank 0 to the others.
#pragma once

#include <string>

#include "app/model_parallel/plan.h"

namespace convoy::app {

std::string write_plan(const PartitionPlan& plan);
PartitionPlan read_plan(const std::string& text);

}  // namespace convoy::app
