// The training and evaluation step of a network, compiled as far as one rank can without memory: whole, or the part that
// one rank of a partitioned run has.
#pragma once

#include <optional>
#include <vector>

#include "app/compile/compiled_graph.h"
#include "app/model_parallel/stage_programs.h"

namespace convoy::app {

struct CompiledSteps {
  std::optional<CompiledGraph> train;  // empty: evaluation only
  CompiledGraph evaluate;
};

// The evaluation step takes the parameters' layouts from the training step. `control` must outlive the kernels. `reuse_delay`:
// as compile_graph() takes it.
CompiledSteps compile_steps(std::optional<StepGraph> train, StepGraph evaluate, kernels::Backend backend,
                            const kernels::StepControl* control, int reuse_delay = 0);

// How a training step is spread over the ranks of a replica; the same on all of them.
struct StepPlacement {
  int parts = 1;
  std::vector<int> part_of;  // of every node of the training step
  ExpectedTimes times;
};

// The part of both steps. Throws std::runtime_error when the steps are not those that the placement was made for. `reuse_delay`: of the
// training step, as compile_graph() takes it.
CompiledSteps part_of_steps(const CompiledSteps& whole, const StepPlacement& placement, int part,
                            int reuse_delay = 0);

}  // namespace convoy::app
