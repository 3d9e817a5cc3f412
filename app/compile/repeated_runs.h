// Connects compiled steps with their memory planner (partition/memory).
#pragma once

#include <vector>

#include "app/compile/compiled_graph.h"
#include "partition/memory/step_model.h"

namespace convoy::app {

// Describes a training step to the planner. `node_ms`: milliseconds of every node.
partition::StepModel step_model(const CompiledGraph& step, const std::vector<double>& node_ms);

// Returns the step with its nodes repeated, and its tensors copied to host memory and back, as the
// schedule of its step_model() says. Repeated nodes and copies write tensors of their own, in the
// layouts of the first. Every result has the same bits.
CompiledGraph with_schedule(const CompiledGraph& step, const partition::StepSchedule& schedule,
                            kernels::Backend backend, int reuse_delay);

}  // namespace convoy::app
