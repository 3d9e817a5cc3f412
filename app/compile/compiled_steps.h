// The compiled training and evaluation steps of a network. They are plain values without addresses:
// a session binds them to memory, and a planner can cut them into the stages of a partitioned step.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/compile/compiled_graph.h"
#include "app/compile/step_options.h"
#include "app/compile/update_kernels.h"
#include "app/model/network.h"

namespace convoy::app {

// Describes how a training step was made to fit into a memory limit.
struct MemoryFit {
  bool fitted = false;  // false if the step fits without a change
  // Bytes of activations that forward leaves for backward.
  std::int64_t kept_bytes = 0;
  // Bytes of activations that forward would leave for backward without a memory limit.
  std::int64_t all_kept_bytes = 0;
  int forward_operations = 0;
  std::map<std::string, int> repeated;  // how many operations backward repeats, by name
  int slices = 1;                       // number of slices of the batch
  std::vector<std::string> sliced;      // the layers that run in slices
  int copied = 0;                       // number of tensors copied to host memory
  std::int64_t host_bytes = 0;          // bytes of these tensors
  // The most bytes of tensors that may be copied to host memory.
  std::int64_t host_limit = 0;
  // Expected milliseconds of the step's operations without a limit.
  double step_ms = 0;
  // Expected milliseconds of the operations that run again.
  double repeated_ms = 0;
  // Expected milliseconds by which the limit makes the step longer. Operations that run again,
  // waits for copies, and slices of the batch take this time.
  double more_ms = 0;
  // If the limit cannot be met: the least bytes that are possible.
  std::int64_t least_bytes = 0;
  // If the limit cannot be met: the operation that needs the most memory.
  std::string least_at;
};

struct CompiledSteps {
  // `train` is empty in a run that only evaluates.
  CompiledSteps(std::optional<CompiledGraph> train, CompiledGraph evaluate, const StepOptions& options);

  const CompiledGraph& main() const { return train ? *train : evaluate; }

  std::optional<CompiledGraph> train;
  CompiledGraph evaluate;
  FlatLayout flat;       // where main()'s parameters are in the flat buffers (update_kernels.h)
  UpdateKernels update;  // empty in a run that only evaluates
  MemoryFit fit;
};

// Compiles both steps. Both use the same parameters, so the evaluation step takes the layouts of
// the parameters from the training step. `early_updates` lets backward update large parameters
// (early_updates.h).
CompiledSteps compile_graphs(std::optional<StepGraph> train, StepGraph evaluate, const StepOptions& options,
                             bool early_updates = false);

// Compiles the steps of a network. The file options.tuning_file, if there is one, says which
// kernels are the fastest. Ignores options.memory_limit: fit_into_limit() applies it later, or the
// planner of a partitioned step does.
CompiledSteps compile_steps(const Network& network, const StepOptions& options, const RankGroups& groups);

// Returns the bytes of the activations that forward writes and backward reads.
std::int64_t kept_bytes(const CompiledGraph& step);

// reuse_delay_of() returns the reuse delay of a whole step, and stage_reuse_delay() that of a stage
// of a partitioned step. The reuse delay is the number of nodes that must pass before a freed
// buffer is used again (compiled_graph.h). A delay makes the memory of a step larger. So it is 0
// for stages under a memory limit, which the planner fills up to the limit.
int reuse_delay_of(const StepOptions& options);
int stage_reuse_delay(const StepOptions& options);

}  // namespace convoy::app
