// Makes a graph of one stage of a partitioned step. It has the kernels and layouts of the whole
// graph, so the stages compute the same bits as one rank. Transfers are nodes of the graph, so a
// buffer stays live while it is transferred.
#pragma once

#include "app/compile/compiled_steps.h"
#include "app/model_parallel/stage_programs.h"

namespace convoy::app {

// Cuts a stage out of the whole step. The stage has only the parameters and states that its nodes
// use. Its images, labels, transforms and metrics are -1 if its nodes do not use them. Tensors keep
// their numbers. `reuse_delay` is that of compile_graph().
CompiledGraph stage_of_step(const CompiledGraph& whole, const StagePrograms& programs, int stage,
                            int reuse_delay = 0);

// Tells how a training step is placed on the ranks of a replica. It is the same on all of them.
struct StepPlacement {
  int stages = 1;
  std::vector<int> stage_of;  // the stage of each node of the training step
  ExpectedTimes times;
};

// Cuts a stage out of the training and the evaluation step. Throws std::runtime_error if the
// placement was made for other steps.
CompiledSteps stage_of_steps(const CompiledSteps& whole, const StepPlacement& placement, int stage,
                             const StepOptions& options);

// Returns the stage of every node of an evaluation step. A node runs on the stage of the lasting
// tensors that it uses. If it uses none, it runs where the forward nodes of its layer begin in the
// training step.
std::vector<int> place_evaluation(const StepGraph& evaluate, const StepGraph& train,
                                  const std::vector<int>& stage_of_train);

}  // namespace convoy::app
