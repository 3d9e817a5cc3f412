// Tells how backward repeats an operation of forward whose output was dropped to save memory. The
// second run has the same bits as the first: dropout draws its mask from counters, running
// statistics are updated only once, and the sums for a batch norm are kept.
#pragma once

#include <optional>
#include <vector>

#include "app/graph/step_graph.h"

namespace convoy::app {

struct Recomputed {
  NodeOp op;
  // Whether `op` equals the operation of the first run. Then the same kernel can run again.
  bool same = true;
  // The outputs that the second run writes again, as positions in the outputs of the first run.
  std::vector<int> outputs{0};
};

// Returns how to run a forward node a second time, so that it writes at least the outputs at the
// positions `wanted`. Returns nothing if the node can run only once: it sums over the ranks, or its
// output is summed over the ranks or into the metrics.
//
// An operation of forward that is no CONVOY_REPEATABLE_NODE needs an overload in recomputed.cpp.
// Without one that file does not compile.
std::optional<Recomputed> recomputed(const Node& node, const std::vector<int>& wanted);

}  // namespace convoy::app
