// Published recomputation schedules, for comparison with the plans of recompute_plan.h.
#pragma once

#include <vector>

#include "partition/memory/step_blocks.h"
#include "partition/memory/step_model.h"

namespace convoy::partition {

// Returns a schedule that drops the outputs of these operations of forward. Each of the operations
// runs again before the first operation of backward that reads one of its outputs. It must then
// find its inputs in memory.
StepSchedule run_again(const StepModel& model, const std::vector<int>& operations);

// Returns a schedule that keeps only the input of every `length`-th block. The `length` blocks from
// there on run forward again right before their backward (Chen et al., "Training deep nets with
// sublinear memory cost", 2016).
StepSchedule checkpoint_blocks(const StepModel& model, const StepBlocks& blocks, int length);

}  // namespace convoy::partition
