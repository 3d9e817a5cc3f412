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
  // Bytes that forward leaves for backward.
  std::int64_t kept_bytes = 0;
  // Bytes that forward leaves for backward if nothing is dropped.
  std::int64_t all_kept_bytes = 0;
  int forward_operations = 0;
  std::map<std::string, int> repeated;  // the number of operations that run again, by name
  int slices = 1;                       // the slices of the batch, one after the other
  std::vector<std::string> sliced;      // the layers that run in slices
  int copied = 0;                       // the number of tensors that wait in host memory
  std::int64_t host_bytes = 0;          // the bytes of the tensors that wait in host memory
  // The most bytes that may wait in host memory.
  std::int64_t host_limit = 0;
  // Expected milliseconds of the step's operations without a limit.
  double step_ms = 0;
  // Expected milliseconds of the operations that run again.
  double repeated_ms = 0;
  // Expected milliseconds by which the limit makes the step longer. They are the time of operations
  // that run again and of waits for copies.
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
// the parameters from the training step.
CompiledSteps compile_graphs(std::optional<StepGraph> train, StepGraph evaluate, const StepOptions& options);

// Compiles the steps of a network, with the kernels that the file options.tuning_file lists.
// Ignores options.memory_limit, since fit_into_limit() and, for a partitioned step, the planner
// apply it.
CompiledSteps compile_steps(const Network& network, const StepOptions& options, const RankGroups& groups);

// Returns the bytes of the activations that forward writes and backward reads.
std::int64_t kept_bytes(const CompiledGraph& step);

// Return the reuse delay (compiled_graph.h) of whole steps and of the stages of a partitioned step.
// It is 0 for stages under a memory limit, because their size is planned to be exactly the limit.
int reuse_delay_of(const StepOptions& options);
int stage_reuse_delay(const StepOptions& options);

}  // namespace convoy::app
