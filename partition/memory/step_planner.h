// Plans a training step within a memory limit. Each tensor of forward is kept for backward,
// computed again (recompute_plan.h), or moved to host memory in between (host_copies.h).
//
// To choose the tensors to move, the planner plans the step without copies for a higher limit. It
// then moves the tensors whose absence brings this plan down to the limit. It tries several higher
// limits and returns the plan with the least expected time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "partition/memory/recompute_plan.h"

namespace convoy::partition {

struct StepPlan {
  StepSchedule schedule;
  std::vector<int> away;        // tensors that are moved to host memory
  double repeated_ms = 0;       // time of all repeated runs
  double more_ms = 0;           // expected time in addition to that of a step that keeps every tensor
  std::int64_t live_bytes = 0;  // live_peak() of the schedule
  std::int64_t host_bytes = 0;  // host memory for the copies, in bytes
};

class StepPlanner {
 public:
  StepPlanner(StepModel model, const HostLink& link);

  const StepModel& model() const { return model_; }
  // Returns the plan with the least expected time whose live bytes are within `limit`, or nothing
  // if none is found. The result is deterministic.
  std::optional<StepPlan> plan(std::int64_t limit) const;
  // Like plan(limit), but only the tensors `away` may be moved to host memory.
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
  // The last planner with copies is kept, because its tables can be used for any limit.
  mutable std::vector<int> latest_away_;
  mutable std::unique_ptr<const RecomputePlanner> latest_;
};

}  // namespace convoy::partition
