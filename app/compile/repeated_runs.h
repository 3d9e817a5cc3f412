// Connects compiled steps with the planner that fits them into a memory limit (partition/memory).
// The planner gets a model of a step and returns a schedule, which is then applied to the step.
#pragma once

#include <vector>

#include "app/compile/compiled_graph.h"
#include "partition/memory/step_model.h"

namespace convoy::app {

// Describes a training step to the planner. `node_ms` holds the milliseconds of every node.
partition::StepModel step_model(const CompiledGraph& step, const std::vector<double>& node_ms);

// Returns a changed copy of the step: as the schedule says, nodes run again, and tensors are copied
// to host memory and back. The schedule must be made for step_model(step). A repeated node or a
// copy writes a new tensor, which has the layout of the original. Every result has the same bits as
// in `step`.
CompiledGraph with_schedule(const CompiledGraph& step, const partition::StepSchedule& schedule,
                            kernels::Backend backend, int reuse_delay);

}  // namespace convoy::app
