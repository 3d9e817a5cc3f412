// Makes compiled steps fit into a memory limit.
#pragma once

#include "app/compile/compiled_steps.h"

namespace convoy::app {

// Gives up the reuse delay, then recomputes as few activations as it takes to meet
// options.memory_limit. If recomputing all candidates is not enough, the steps stay above the
// limit, and ModelMemory reports it.
// `fused` is the network that `steps` were compiled from.
void fit_into_limit(CompiledSteps& steps, const Network& fused, const StepOptions& options,
                    const comm::Collectives& replicas);

}  // namespace convoy::app
