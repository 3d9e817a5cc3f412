// How long the operations of a compiled step take on this rank, measured in the step's own order without the step's
// memory: tensors take turns in a buffer that keeps to the limit, so a step can be timed that does not fit. What is
// computed is meaningless; where data come from (the caches, where the operation before has just left them) is as in a
// real step.
#pragma once

#include <cstdint>
#include <vector>

#include "app/runtime/prepared_graph.h"
#include "kernels/optimizer/optimizer.h"

namespace convoy::app {

struct OpTimes {
  std::vector<double> node_ms;       // of every node; 0 for all_reduce
  double update_ms_per_element = 0;  // of the optimizer
};

// Host backends. `control` is the one that the kernels were made with; it must describe a full batch. Uses at most
// `memory_limit` bytes (0: as many as the step has), and more only where a single operation does. Takes about two seconds
// or three steps, whichever is longer.
OpTimes measure_op_times(const PreparedGraph& step, kernels::Backend backend,
                         const kernels::StepControl& control, const kernels::OptimizerProblem& optimizer,
                         std::int64_t memory_limit);

}  // namespace convoy::app
