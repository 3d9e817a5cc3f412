// Lets the largest convolutions sum the gradient of their weights over pieces of the batch, so that
// a step that must save memory can compute it slice by slice with the same bits
// (app/graph/sliced.h).
#pragma once

#include <cstdint>

#include "app/graph/step_graph.h"

namespace convoy::app {

struct PieceOptions {
  int most_pieces = 4;  // most pieces of a batch; a power of two
  // Convolutions are cut if x and dy together take at least these bytes. Each further piece costs
  // its launches (23 us in vgg16 on an H100), which smaller tensors would not be worth.
  std::int64_t least_bytes = std::int64_t{1} << 30;
};

// Cuts all convolutions from the first large one to the last, as far as the gradient of their
// output can be computed slice by slice. The sums then have another order, and so other bits. All
// have the same pieces, so that slices of several layers end at the same samples: the fewest of 2,
// 4 and so on with which x and dy of each piece take less than least_bytes.
void cut_weight_gradients(StepGraph& graph, const PieceOptions& options = {});

}  // namespace convoy::app
