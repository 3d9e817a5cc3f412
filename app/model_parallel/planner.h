// Decides from measured times how a training step is divided among the ranks of a replica, or that
// one rank runs all of it. Rank 0 of a job uses a planner as follows; plan_partition() (plan.h)
// does all of this, with the communication between the ranks:
//
//   PartitionPlanner planner(whole, options, groups, profile);
//   const PartitionPlan& placed = planner.place(time_ops(...));  // on rank 0
//   const double ratio = time_concurrency(...);              // on rank 0, may run beside place()
//   const PlacedTimes times = time_stages(..., placed, ...);  // on all ranks
//   const PartitionPlan plan = planner.choose(ratio, times);
//
// The planner neither measures nor communicates.
#pragma once

#include <cstdint>
#include <memory>

#include "app/model_parallel/machine_profile.h"
#include "app/model_parallel/plan.h"
#include "app/model_parallel/stage_times.h"

namespace convoy::app {

class PartitionPlanner {
 public:
  // `whole` is the undivided step: compile_steps() made it with these options and groups, and it
  // trains. `groups` has stages. `profile` is what measure_machine() returned on rank 0. All
  // arguments except the profile must outlive the planner. Throws std::runtime_error if it can
  // prove that no placement fits into memory; the message names the limit and what needs more.
  PartitionPlanner(const CompiledSteps& whole, const StepOptions& options, const RankGroups& groups,
                   MachineProfile profile);
  ~PartitionPlanner();

  // Returns how many bytes the arena (app/compile/memory_plan.h) of a rank may have; 0 if there is
  // no limit. On hosts it is options.memory_limit. On GPUs it is at most the free memory of the GPU
  // that has the least; without options.memory_limit, or with a larger one, it is 15/16 of that.
  std::int64_t memory_limit() const;
  // Returns whether one rank can hold the whole step within the memory limit.
  bool fits_one_rank() const;

  // Finds the placement of the operations that is expected to be the fastest; with a memory limit,
  // the first one that fits. `ops` are the times of the whole step. Takes about 0.3 s, and up to
  // about ten with a memory limit. The search is limited in time, so its result may vary. Of the
  // plan, only what time_stages() needs is set. It is valid as long as the planner. Throws
  // std::runtime_error if no placement fits. Meanwhile other threads may call the functions above.
  const PartitionPlan& place(MeasuredOps ops);

  // Returns the plan to run: the placement that place() found, or one that keeps the whole step on
  // the first rank (PartitionPlan::transfers is 0). It keeps the step whole if one rank can hold it
  // and stages are not predicted to be at least 5 % faster. `stage_times` were measured with the
  // placement. `concurrency_ratio` is what time_concurrency() returned, or 1. The caller sets
  // PartitionPlan::seconds. Throws std::logic_error if place() was not called.
  PartitionPlan choose(double concurrency_ratio, const PlacedTimes& stage_times) const;

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace convoy::app
