// Published schedules of recomputation, to which plans are compared.
#pragma once

#include <vector>

#include "partition/memory/step_blocks.h"
#include "partition/memory/step_model.h"

namespace convoy::partition {

// Returns a schedule that drops the outputs of these operations of forward. Each of the operations
// runs again before the first operation of backward that reads one of its outputs. It then reads
// inputs that were written in forward.
StepSchedule run_again(const StepModel& model, const std::vector<int>& operations);

// Returns a schedule that keeps only the input of every `length`-th block. Each group of `length`
// blocks runs forward again right before its backward (Chen et al., "Training deep nets with
// sublinear memory cost", 2016).
StepSchedule checkpoint_blocks(const StepModel& model, const StepBlocks& blocks, int length);

}  // namespace convoy::partition
