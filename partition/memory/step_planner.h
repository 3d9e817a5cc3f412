// Plans a training step within a memory limit. Tensors of forward are kept for backward, computed
// again (recompute_plan.h), or wait in host memory (host_copies.h).
// To choose the tensors that wait, the step is planned without copies for a higher limit. The
// tensors are taken whose absence brings that plan down to the limit. Several higher limits are
// tried, and the plan with the least expected time is returned.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "partition/memory/recompute_plan.h"

namespace convoy::partition {

struct StepPlan {
  StepSchedule schedule;
  std::vector<int> away;        // tensors that wait in host memory
  double repeated_ms = 0;       // time of the runs after each operation's first
  double more_ms = 0;           // expected time beyond that of a step that keeps every tensor
  std::int64_t live_bytes = 0;  // live_peak() of the schedule
  std::int64_t host_bytes = 0;  // bytes of host memory that the copies take
};

class StepPlanner {
 public:
  StepPlanner(StepModel model, const HostLink& link);

  const StepModel& model() const { return model_; }
  // Returns the plan with the least expected time whose live bytes are within `limit`, or nothing
  // if none is found. Deterministic.
  std::optional<StepPlan> plan(std::int64_t limit) const;
  // Returns the same for plans in which only the tensors `away` may wait in host memory.
  std::optional<StepPlan> plan(std::int64_t limit, const std::vector<int>& away) const;
  // Returns the plan with the fewest live bytes.
  StepPlan least() const;

 private:
  const RecomputePlanner& planner(const std::vector<int>& away) const;
  StepPlan with_copies(const RecomputePlan& plan, std::vector<int> away, std::int64_t limit) const;
  std::vector<int> relieving(const StepSchedule& schedule, std::int64_t limit) const;
  std::vector<int> all_that_wait() const;
  std::vector<std::int64_t> targets(std::int64_t limit) const;

  const StepModel model_;
  const HostLink link_;
  double step_ms_ = 0, forward_ms_ = 0;
  std::int64_t most_ = 0;  // live bytes of a step that keeps every tensor
  const RecomputePlanner without_copies_;
  // The last planner with copies. Keep it, because its tables serve for any limit.
  mutable std::vector<int> latest_away_;
  mutable std::unique_ptr<const RecomputePlanner> latest_;
};

}  // namespace convoy::partition
