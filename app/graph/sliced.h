// Tells how an operation runs over a slice of the batch, which is a range of consecutive samples.
// Every sample of a slice gets the same bits as in the whole batch. A gradient of weights is summed
// over one slice after the other, and ends with the same bits as the gradient of the whole batch.
#pragma once

#include <cstdint>
#include <optional>

#include "app/graph/step_graph.h"

namespace convoy::app {

struct BatchSlice {
  std::int64_t batch = 0;               // the number of samples in the whole batch
  std::int64_t first = 0, samples = 0;  // the first sample of the slice, and how many it has
};

// Returns the operation on a slice of the node's batch. Returns nothing if the operation must see
// the whole batch. Also returns nothing for a gradient of weights if the slice does not consist of
// whole pieces (passes/weight_gradient_pieces.h). Such a gradient adds its slice to the sum of the
// earlier slices, which it reads as additional inputs (Conv2dProblem::continues).
std::optional<NodeOp> sliced(const Node& node, const BatchSlice& slice);

// Returns whether each slice of the batch uses a different part of this operand. Other operands,
// such as weights, serve all slices. Requires that sliced() can divide the node.
bool is_divided(const StepGraph& graph, const Node& node, TensorId operand);

}  // namespace convoy::app
