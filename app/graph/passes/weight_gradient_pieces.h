// Lets the largest convolutions sum the gradient of their weights over pieces of the batch, so that
// a step that must save memory can compute it slice by slice with the same bits
// (app/graph/sliced.h).
#pragma once

#include <cstdint>

#include "app/graph/step_graph.h"

namespace convoy::app {

struct PieceOptions {
  int pieces = 8;  // of a batch
  // Convolutions are cut if x and dy take at least this share of what forward leaves for backward,
  // and at least these bytes.
  double share = 0.125;
  std::int64_t least_bytes = std::int64_t{32} << 20;
};

// Cuts all convolutions from the first large one to the last, as far as the gradient of their
// output can be computed slice by slice. The sums then have another order, and so other bits.
void cut_weight_gradients(StepGraph& graph, const PieceOptions& options = {});

}  // namespace convoy::app
