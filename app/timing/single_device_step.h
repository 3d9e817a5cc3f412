// Times a training step on one device alone. The step runs as in a session, with operations in
// parallel lanes (execute/lane_plan.h).
#pragma once

#include "app/compile/compiled_steps.h"

namespace convoy::app {

// Returns the milliseconds of a training step with its update. The step communicates with no other
// rank, and its random images are in memory already, whatever options.input says. `steps` must have
// been compiled with `options`. Needs memory for the whole step.
double time_single_device_step(const CompiledSteps& steps, const StepOptions& options);

}  // namespace convoy::app
