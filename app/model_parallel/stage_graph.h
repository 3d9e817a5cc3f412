// One stage of a partitioned step, as a graph of its own: the whole graph's kernels and layouts, so that every stage
// computes the very bits that one rank computes, and transfers as nodes, so that buffers under way stay live.
#pragma once

#include "app/compile/compiled_steps.h"
#include "app/model_parallel/stage_programs.h"

namespace convoy::app {

// Only the parameters and states that the stage's nodes touch are the stage's; images, labels,
// transforms and metrics are -1 where none does. Tensors keep their numbers. `reuse_delay`: as compile_graph()
// takes it.
CompiledGraph stage_of_step(const CompiledGraph& whole, const StagePrograms& programs, int stage,
                            int reuse_delay = 0);

// How a training step is spread over the ranks of a replica; the same on all of them.
struct StepPlacement {
  int stages = 1;
  std::vector<int> stage_of;  // of every node of the training step
  ExpectedTimes times;
};

// One stage of both steps. Throws std::runtime_error if the steps are not those that the placement was made for.
CompiledSteps stage_of_steps(const CompiledSteps& whole, const StepPlacement& placement, int stage,
                             const StepOptions& options);

// Where an evaluation step's nodes run, given the training step's: with the tensors that last, else where the forward
// nodes of their layer begin.
std::vector<int> place_evaluation(const StepGraph& evaluate, const StepGraph& train,
                                  const std::vector<int>& stage_of_train);

}  // namespace convoy::app
