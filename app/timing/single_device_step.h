// The time of a training step on one device alone, as a session runs it: operations side by side in lanes.
#pragma once

#include "app/compile/compiled_steps.h"

namespace convoy::app {

// Returns milliseconds with the update, without other replicas, on drawn images that are in memory already. `steps` were
// compiled with `options` for any source of images. Takes the memory of the whole step.
double time_single_device_step(const CompiledSteps& steps, const StepOptions& options);

}  // namespace convoy::app
