// Trades time for memory: an activation that backward reads is dropped after forward and computed
// again before its first reader there (Chen et al., "Training deep nets with sublinear memory
// cost", 2016). Only outputs of batch norm are candidates: it is cheap, and backward keeps its
// inputs anyway. The second result has the bits of the first.
#pragma once

#include <vector>

#include "app/graph/step_graph.h"

namespace convoy::app {

struct RecomputeCandidate {
  TensorId tensor = -1;
  std::int64_t bytes = 0;  // of the tensor, which lives from forward to backward
};

// Returns the candidates in the order in which they should be tried. No candidate's node reads
// another candidate. Those whose node reads one activation come before those with a residual, and
// of each kind the largest come first.
std::vector<RecomputeCandidate> recompute_candidates(const StepGraph& graph);

// Drops these candidates after forward, and computes them again in backward.
void recompute(StepGraph& graph, const std::vector<TensorId>& tensors);

}  // namespace convoy::app
