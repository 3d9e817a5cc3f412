// Builds the step graph of a network: forward, loss and, in training, backward. Differentiates
// layer by layer in reverse mode.
#pragma once

#include "app/graph/emitter.h"
#include "app/model/network.h"

namespace convoy::app {

// Returns the step graph. Throws std::runtime_error unless the network's outputs are logits of
// shape [N, classes].
StepGraph build_step_graph(const Network& network, const GraphOptions& options);

}  // namespace convoy::app
