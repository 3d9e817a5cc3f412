// Makes the largest convolutions sum the gradient of their weights over pieces of the batch. A step
// that must save memory can then compute this gradient over slices of the batch
// (app/graph/sliced.h), with the same bits as a step without slices.
#pragma once

#include <cstdint>

#include "app/graph/step_graph.h"

namespace convoy::app {

struct PieceOptions {
  int most_pieces = 4;  // most pieces of a batch; a power of two
  // A convolution counts as large if x and dy together take at least these bytes. Each additional
  // piece takes time to launch (23 us in vgg16 on an H100), which does not pay for smaller tensors.
  std::int64_t least_bytes = std::int64_t{1} << 30;
};

// Lets convolutions sum the gradient of their weights over pieces of the batch: all convolutions
// from the first large one to the last, if the gradient of their output can be computed slice by
// slice. Such a sum has another order than one over the whole batch, and so other bits. All
// convolutions have pieces of the same size, so that slices of several layers end at the same
// samples. The number of pieces is the least of 2, 4 and so on, up to most_pieces, with which x and
// dy of each piece take less than least_bytes.
void cut_weight_gradients(StepGraph& graph, const PieceOptions& options = {});

}  // namespace convoy::app
