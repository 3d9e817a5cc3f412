// The training and the evaluation step of a network as values: kernels are made, layouts are
// chosen, and every buffer has an offset. A session binds them to addresses, and a planner cuts
// them into stages.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "app/compile/compiled_graph.h"
#include "app/compile/step_options.h"
#include "app/compile/update_kernels.h"
#include "app/model/network.h"

namespace convoy::app {

// The way in which a training step was made to fit into a memory limit.
struct MemoryFit {
  bool fitted = false;              // false: nothing had to be done
  std::int64_t kept_bytes = 0;      // what forward leaves for backward
  std::int64_t all_kept_bytes = 0;  // the same if nothing is dropped
  int forward_operations = 0;
  std::map<std::string, int> repeated;  // operations that run again, by name
  int copied = 0;                       // tensors that wait in host memory
  std::int64_t host_bytes = 0;          // of these
  std::int64_t host_limit = 0;          // the most that may wait there
  double step_ms = 0;                   // expected time of the operations without a limit
  double repeated_ms = 0;               // of those that run again
  double more_ms = 0;                   // of these and of what waits for copies
  std::int64_t least_bytes = 0;         // if the limit cannot be met: the least that can,
  std::string least_at;                 // and the operation that needs it
};

struct CompiledSteps {
  // `train` is empty in a run that only evaluates.
  CompiledSteps(std::optional<CompiledGraph> train, CompiledGraph evaluate, const StepOptions& options);

  const CompiledGraph& main() const { return train ? *train : evaluate; }

  std::optional<CompiledGraph> train;
  CompiledGraph evaluate;
  FlatLayout flat;       // of main()'s parameters
  UpdateKernels update;  // empty in a run that only evaluates
  MemoryFit fit;
};

// Compiles both steps. The evaluation step takes the layouts of parameters from the training step.
CompiledSteps compile_graphs(std::optional<StepGraph> train, StepGraph evaluate, const StepOptions& options);

// Compiles the steps of a network with the kernels that options.tuning_file names, whatever
// options.memory_limit is: fit_into_limit() and, for a partitioned step, the planner obey it.
CompiledSteps compile_steps(const Network& network, const StepOptions& options, const RankGroups& groups);

// Returns the bytes of what forward leaves for backward.
std::int64_t kept_bytes(const CompiledGraph& step);

// The reuse delay (compiled_graph.h) of whole steps, and of the stages of a partitioned step. It is
// 0 for stages under a memory limit, since they are sized to the limit exactly.
int reuse_delay_of(const StepOptions& options);
int stage_reuse_delay(const StepOptions& options);

}  // namespace convoy::app
