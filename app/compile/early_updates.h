// Updates large parameters inside backward. The optimizer usually updates all parameters at the end
// of the step, so that the gradients of all of them are in memory at once. A gradient whose
// parameter is updated early is an activation instead: its memory is free again after the update.
// The update may also run at the same time as other operations of backward. The bits are the same.
#pragma once

#include "app/compile/compiled_graph.h"
#include "app/compile/step_options.h"

namespace convoy::app {

// Returns whether a training step may update parameters early: no other rank adds to the gradients
// (`replicas` is 1), the batch does not come in parts, and the optimizer needs only the parameter's
// own gradient, element by element.
bool updates_early(const StepOptions& options, int replicas);

// Adds an OptimizerUpdate node for each parameter of at least options.early_update_bytes bytes. The
// node comes after the last node that uses the parameter, its bf16 copy or its gradient. A gradient
// that is summed over slices of the batch (batch_slices.h) stays where it is, because such a node
// would divide the slices.
CompiledGraph with_early_updates(CompiledGraph step, const StepOptions& options, int reuse_delay);

}  // namespace convoy::app
