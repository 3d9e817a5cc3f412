// Times a training step on one device alone, as a session runs it: with operations in parallel
// lanes.
#pragma once

#include "app/compile/compiled_steps.h"

namespace convoy::app {

// Returns milliseconds with the update, without other replicas, on random images that are in memory
// already. `steps` were compiled with `options` for any source of images. Needs memory for the
// whole step.
double time_single_device_step(const CompiledSteps& steps, const StepOptions& options);

}  // namespace convoy::app
