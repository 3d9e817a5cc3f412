// Makes the step graph of a network for a backend, a precision and a source of images.
#pragma once

#include "app/compile/step_options.h"
#include "app/graph/step_graph.h"
#include "app/model/network.h"

namespace convoy::app {

// Returns the step graph after all passes that the backend and the precision allow. `fused` is a
// network that fuse() returned. `replicas` is the number of ranks that sum gradients and
// statistics.
StepGraph make_step_graph(const Network& fused, const StepOptions& options, int replicas, bool training);

}  // namespace convoy::app
