// Network -> StepGraph: forward, loss and, in training, the backward operations (reverse-mode differentiation by layer).
#pragma once

#include "app/graph/emitter.h"
#include "app/model/network.h"

namespace convoy::app {

// The network's last layer must give logits [N, classes].
StepGraph build_step_graph(const Network& network, const GraphOptions& options);

}  // namespace convoy::app
