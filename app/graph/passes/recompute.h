// Trades time for memory: an activation that backward reads is dropped after forward and computed again before its first
// reader there (Chen et al., "Training deep nets with sublinear memory cost", 2016). Only outputs of cheap operations are
// candidates: batch norm, which reads what backward keeps anyway. The second result has the bits of the first.
#pragma once

#include <vector>

#include "app/graph/step_graph.h"

namespace convoy::app {

struct RecomputeCandidate {
  TensorId tensor = -1;
  std::int64_t bytes = 0;  // that live from forward to backward because of it
};

// In the order in which they should be tried: the largest first. None reads another one.
std::vector<RecomputeCandidate> recompute_candidates(const StepGraph& graph);

void recompute(StepGraph& graph, const std::vector<TensorId>& tensors);

}  // namespace convoy::app
