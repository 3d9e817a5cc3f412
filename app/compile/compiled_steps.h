// The training and the evaluation step of a network as values: kernels are made, layouts are
// chosen, and every buffer has an offset. A session binds them to addresses, and a planner cuts
// them into stages.
#pragma once

#include <optional>

#include "app/compile/compiled_graph.h"
#include "app/compile/step_options.h"
#include "app/compile/update_kernels.h"
#include "app/model/network.h"

namespace convoy::app {

struct CompiledSteps {
  // `train` is empty in a run that only evaluates.
  CompiledSteps(std::optional<CompiledGraph> train, CompiledGraph evaluate, const StepOptions& options);

  const CompiledGraph& main() const { return train ? *train : evaluate; }

  std::optional<CompiledGraph> train;
  CompiledGraph evaluate;
  FlatLayout flat;       // of main()'s parameters
  UpdateKernels update;  // empty in a run that only evaluates
};

// Compiles both steps. The evaluation step takes the layouts of parameters from the training step.
CompiledSteps compile_graphs(std::optional<StepGraph> train, StepGraph evaluate, const StepOptions& options);

// Compiles the steps of a network with the kernels that options.tuning_file names.
// If options.memory_limit is set, activations are recomputed until both steps fit or none is left
// to recompute. A partitioned step (groups.stages is set) is not limited here: the limit is for
// each stage.
CompiledSteps compile_steps(const Network& network, const StepOptions& options, const RankGroups& groups);

// The reuse delay (compiled_graph.h) of whole steps, and of the stages of a partitioned step. It is
// 0 for stages under a memory limit, since they are sized to the limit exactly.
int reuse_delay_of(const StepOptions& options);
int stage_reuse_delay(const StepOptions& options);

}  // namespace convoy::app
