// Tells how an operation runs over a slice of the batch: some neighbouring samples. Every sample of
// a slice has the bits that it has in the whole batch, and a gradient of weights that is summed
// over slice after slice has those of the whole batch's gradient.
#pragma once

#include <cstdint>
#include <optional>

#include "app/graph/step_graph.h"

namespace convoy::app {

struct BatchSlice {
  std::int64_t batch = 0;               // the samples of the whole batch
  std::int64_t first = 0, samples = 0;  // the samples of the slice
};

// Returns the operation on a slice of the node's batch. Returns nothing if the operation must see
// the whole batch, or if the slice would divide a piece of a sum over the batch. The gradient of
// weights of a slice that is not the first has the gradient so far as additional inputs
// (Conv2dProblem::continues).
std::optional<NodeOp> sliced(const Node& node, const BatchSlice& slice);

// Returns whether each slice has a part of this operand of a node with sliced(). The others, such
// as weights, serve all slices.
bool is_divided(const StepGraph& graph, const Node& node, TensorId operand);

}  // namespace convoy::app
