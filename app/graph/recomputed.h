// Says how backward repeats an operation of forward whose output was dropped and is needed again.
// The second run has the bits of the first: dropout draws its mask from counters, running
// statistics are updated once, and sums for a batch norm are kept.
#pragma once

#include <optional>
#include <vector>

#include "app/graph/step_graph.h"

namespace convoy::app {

struct Recomputed {
  NodeOp op;
  bool same = true;             // as the first run's operation, so its kernel serves again
  std::vector<int> outputs{0};  // of the first run's outputs, those that the second writes
};

// Returns the second run of a forward node that gives its `wanted` outputs (positions), and perhaps
// others; nothing if it can only run once. Sums over the ranks run once, and so does whatever they
// are taken of.
// A new operation of forward needs an answer in recomputed.cpp, else that file does not compile.
std::optional<Recomputed> recomputed(const Node& node, const std::vector<int>& wanted);

}  // namespace convoy::app
