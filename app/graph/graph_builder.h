// Builds the step graph of a network: forward, loss and, in training, backward, by reverse-mode
// differentiation layer by layer.
#pragma once

#include "app/graph/emitter.h"
#include "app/model/network.h"

namespace convoy::app {

// Throws std::runtime_error unless the network's outputs are logits [N, classes].
StepGraph build_step_graph(const Network& network, const GraphOptions& options);

}  // namespace convoy::app
