// One stage of a partitioned step as a graph of its own. It has the whole graph's kernels and
// layouts, so every stage computes the same bits as one rank. Transfers are nodes, so buffers in
// flight stay live.
#pragma once

#include "app/compile/compiled_steps.h"
#include "app/model_parallel/stage_programs.h"

namespace convoy::app {

// Cuts a stage out of the whole step. It keeps only the parameters and states that its nodes touch;
// images, labels, transforms and metrics are -1 if no node touches them. Tensors keep their
// numbers.
// `reuse_delay`: as in compile_graph().
CompiledGraph stage_of_step(const CompiledGraph& whole, const StagePrograms& programs, int stage,
                            int reuse_delay = 0);

// The spread of a training step over the ranks of a replica. It is the same on all of them.
struct StepPlacement {
  int stages = 1;
  std::vector<int> stage_of;  // by node of the training step
  ExpectedTimes times;
};

// Cuts a stage out of both steps. Throws std::runtime_error if the placement was made for other
// steps.
CompiledSteps stage_of_steps(const CompiledSteps& whole, const StepPlacement& placement, int stage,
                             const StepOptions& options);

// Returns the stage of every node of an evaluation step. A node runs on the stage of the lasting
// tensors that it touches, or else where the forward nodes of its layer begin in the training step.
std::vector<int> place_evaluation(const StepGraph& evaluate, const StepGraph& train,
                                  const std::vector<int>& stage_of_train);

}  // namespace convoy::app
