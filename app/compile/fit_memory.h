// Makes compiled steps fit into a memory limit.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/compile/compiled_steps.h"
#include "partition/memory/step_planner.h"

namespace convoy::app {

// Estimates the milliseconds of every node of a step from its arithmetic operations and from the
// bytes that it reads and writes.
std::vector<double> estimated_node_ms(const CompiledGraph& step, const StepOptions& options);

// Estimates the time of evaluating a batch, divided by the time of a training step.
double evaluated_batch_steps(const CompiledSteps& steps, const StepOptions& options);

// Estimates the rates of copies to and from host memory. On a host backend these copies run between
// the operations, not at the same time.
partition::HostLink estimated_link(const StepOptions& options);

// Returns whether the steps need more memory than options.memory_limit.
bool exceeds_limit(const CompiledSteps& steps, const StepOptions& options, const comm::Collectives& replicas);

// Changes the steps so that they need at most options.memory_limit bytes, at the least expected
// time:
//   1. Freed buffers are reused at once, without a reuse delay (compiled_graph.h). The other
//      changes are made only if this is not enough.
//   2. Forward leaves fewer tensors for backward. Backward gets the other tensors from copies in
//      host memory, as far as options.host_memory allows, or computes them again.
//   3. The layers with the largest tensors may run over slices of the batch (batch_slices.h).
// `node_ms` holds the milliseconds of every node of the training step. steps.fit describes the
// result. If no plan fits, the steps get the smallest plan, and ModelMemory reports the error.
void fit_into_limit(CompiledSteps& steps, const StepOptions& options, const comm::Collectives& replicas,
                    const std::vector<double>& node_ms, const partition::HostLink& link);

// Finds plans that make a training step fit into a memory limit. One fitter serves any number of
// limits.
class MemoryFitter {
 public:
  struct Fitted {
    CompiledGraph train;
    std::optional<CompiledGraph> evaluate;  // the evaluation step, if it must change, too
    std::int64_t bytes = 0;                 // bytes that a rank reserves
    int slices = 1;                         // number of slices of the batch
    std::vector<std::string> sliced;        // the layers that run in slices
    double repeated_ms = 0;
    // Expected milliseconds in addition to the step without a limit.
    double more_ms = 0;
    int neediest = -1;  // the node during which the step needs the most memory
  };

  // `steps` and `options` must outlive the fitter. `scratch` takes the bytes of the gradients. It
  // returns the bytes of scratch memory that the ranks of a host need to sum these gradients, as
  // the argument `shared_scratch` of MemoryPlan does.
  MemoryFitter(const CompiledSteps& steps, const StepOptions& options,
               std::function<std::size_t(std::size_t)> scratch, const std::vector<double>& node_ms,
               const partition::HostLink& link = {});

  // Returns the fastest plan that needs at most `limit` bytes, or nothing if there is none.
  std::optional<Fitted> within(std::int64_t limit) const;
  // Returns the plan that needs the fewest bytes.
  Fitted least() const;
  std::int64_t unlimited_bytes() const { return bytes_with(steps_.train->activation_bytes, steps_.evaluate); }

 private:
  // One way to divide the batch into slices: the steps that are compiled for it, and their planner.
  struct Variant {
    CompiledGraph train, evaluate;
    int slices = 1;
    double more_ms = 0;  // expected time by which slices take longer than whole batches
    partition::StepPlanner planner;
  };
  void add_slices(const std::vector<double>& node_ms, const partition::HostLink& link);
  Fitted fitted(const Variant& variant, const partition::StepPlan& plan, int reuse_delay,
                bool sliced_evaluation) const;
  std::optional<Fitted> within(const Variant& variant, std::int64_t limit) const;
  Fitted least(const Variant& variant) const;
  std::int64_t bytes_with(std::int64_t activation_bytes, const CompiledGraph& evaluate) const;

  const CompiledSteps& steps_;
  const StepOptions& options_;
  const std::int64_t members_;
  std::int64_t other_bytes_ = 0;
  // The first variant runs whole batches. Each later variant has twice as many slices as the one
  // before it.
  std::vector<std::unique_ptr<const Variant>> variants_;
  std::vector<std::string> sliced_layers_;
};

}  // namespace convoy::app
