// Makes the step graph of a network for a backend, a precision and a source of images.
#pragma once

#include "app/compile/step_options.h"
#include "app/graph/step_graph.h"
#include "app/model/network.h"

namespace convoy::app {

// Returns the step graph after all passes (app/graph/passes) that the backend and the precision
// allow. `fused` is the result of fuse(). `replicas` is the number of ranks over which gradients
// and statistics are summed (RankGroups).
StepGraph make_step_graph(const Network& fused, const StepOptions& options, int replicas, bool training);

}  // namespace convoy::app
