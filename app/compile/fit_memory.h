// Makes compiled steps fit into a memory limit.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/compile/compiled_steps.h"
#include "partition/memory/step_planner.h"

namespace convoy::app {

// Estimates the milliseconds of every node of a step, from its products and the bytes that it
// moves.
std::vector<double> estimated_node_ms(const CompiledGraph& step, const StepOptions& options);

// Estimates the way to host memory. Copies of host backends run between their operations.
partition::HostLink estimated_link(const StepOptions& options);

// Tells whether the steps need more than options.memory_limit.
bool exceeds_limit(const CompiledSteps& steps, const StepOptions& options, const comm::Collectives& replicas);

// Gives up the reuse delay, then keeps as much of what forward leaves for backward as
// options.memory_limit allows. The rest waits in host memory, as far as options.host_memory allows,
// or the operations that make it run again, at the least time by `node_ms` (of every node of the
// training step) and `link`. steps.fit says what was done. If not even the smallest plan fits, the
// steps have that one, and ModelMemory reports it.
void fit_into_limit(CompiledSteps& steps, const StepOptions& options, const comm::Collectives& replicas,
                    const std::vector<double>& node_ms, const partition::HostLink& link);

// Finds the plans of one step for any limit.
class MemoryFitter {
 public:
  struct Fitted {
    CompiledGraph train;
    std::int64_t bytes = 0;  // of the arena
    double repeated_ms = 0;
    double more_ms = 0;  // expected in addition to the time of the unlimited step
    int neediest = -1;   // the node of the operation that needs the most
  };

  // All arguments but `link` must outlive the fitter. `scratch`: as MemoryPlan takes it.
  MemoryFitter(const CompiledSteps& steps, const StepOptions& options,
               std::function<std::size_t(std::size_t)> scratch, const std::vector<double>& node_ms,
               const partition::HostLink& link = {});

  std::optional<Fitted> within(std::int64_t limit) const;  // nothing if no plan fits
  Fitted least() const;
  std::int64_t unlimited_bytes() const { return bytes_with(unlimited_); }

 private:
  Fitted fitted(const partition::StepPlan& plan, int reuse_delay) const;
  std::int64_t bytes_with(std::int64_t activation_bytes) const;

  const CompiledSteps& steps_;
  const StepOptions& options_;
  const std::int64_t members_;
  std::int64_t other_bytes_ = 0, least_activations_ = 0, unlimited_ = 0;
  partition::StepPlanner planner_;
};

}  // namespace convoy::app
