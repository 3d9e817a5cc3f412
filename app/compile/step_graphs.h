// Makes the step graph of a network for a backend, a precision and a source of images.
#pragma once

#include "app/compile/step_options.h"
#include "app/graph/step_graph.h"
#include "app/model/network.h"

namespace convoy::app {

// `fused` is a network after fuse(). `replicas`: the number of ranks that sum gradients and
// statistics.
// Every pass that the backend and the precision allow has rewritten the graph.
StepGraph make_step_graph(const Network& fused, const StepOptions& options, int replicas, bool training);

}  // namespace convoy::app
