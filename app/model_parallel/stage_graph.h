// Makes the graph of one stage (plan.h) of a partitioned step. It has the kernels and layouts of
// the whole graph, so the stages compute the same bits as one rank. Transfers are nodes of the
// graph, so a buffer is not reused while it is transferred.
#pragma once

#include "app/compile/compiled_steps.h"
#include "app/model_parallel/stage_programs.h"

namespace convoy::app {

// Cuts a stage out of the whole step. The stage has only the parameters and states that its nodes
// use. The TensorIds of its images, labels, transforms and metrics are -1 if its nodes do not use
// them. Tensors keep their numbers. compile_graph() explains `reuse_delay`.
CompiledGraph stage_of_step(const CompiledGraph& whole, const StagePrograms& programs, int stage,
                            int reuse_delay = 0);

// Tells which rank of a replica runs each operation of a training step, and when operations are
// expected to run. All ranks must have the same placement.
struct StepPlacement {
  int stages = 1;
  std::vector<int> stage_of;  // the stage of each node of the training step
  ExpectedTimes times;
  std::vector<std::int64_t> arena_bytes = {};  // the bytes that each stage reserves
};

// Cuts a stage out of the training and the evaluation step. Throws std::runtime_error if the
// placement is for another number of nodes. This happens if rank 0 has another kind of processor.
CompiledSteps stage_of_steps(const CompiledSteps& whole, const StepPlacement& placement, int stage,
                             const StepOptions& options);

// Returns the stage of every node of an evaluation step. A node that uses a lasting tensor
// (lasting_name), such as a parameter, runs on the stage that has this tensor in the training step.
// Any other node runs on the stage of the first forward node of its layer in the training step.
std::vector<int> place_evaluation(const StepGraph& evaluate, const StepGraph& train,
                                  const std::vector<int>& stage_of_train);

}  // namespace convoy::app
