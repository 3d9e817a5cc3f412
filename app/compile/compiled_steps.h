// The training and evaluation step of a network as values: kernels made, layouts chosen, every buffer at its offset.
// They belong to nobody's memory; a session binds them to addresses, and a planner can cut them into stages.
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
  FlatLayout flat;       // of the training step, or else of the evaluation step
  UpdateKernels update;  // empty in a run that only evaluates
};

// Compiles both steps of a graph. The evaluation step takes the parameters' layouts from the training step.
CompiledSteps compile_graphs(std::optional<StepGraph> train, StepGraph evaluate, const StepOptions& options);

// Compiles the steps of a network with the kernels that options.tuning_file names, and within options.memory_limit:
// activations are computed twice until both steps fit, or until none is left to compute twice. A partitioned step
// (groups.stages is set) is compiled without the limit, as its stages are what must fit.
CompiledSteps compile_steps(const Network& network, const StepOptions& options, const RankGroups& groups);

// The reuse delay (compiled_graph.h) of steps with these options, and of the stages of a partitioned step: 0 under a
// memory limit, since stages are sized to it exactly.
int reuse_delay_of(const StepOptions& options);
int stage_reuse_delay(const StepOptions& options);

}  // namespace convoy::app
