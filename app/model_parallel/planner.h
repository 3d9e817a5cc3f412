// Decides from measured times how the training step of a replica (plan.h) is partitioned over the
// replica's ranks, or that one rank runs all of it. Rank 0 of the job makes the plan for all
// replicas. The planner neither measures nor communicates: plan_partition() (plan.h) calls it
// between its measurements, in this order:
//   1. time_ops() on rank 0, then place();
//   2. time_stages() of that placement on all ranks, and time_concurrency() on rank 0 if one rank
//      can hold the step;
//   3. choose().
#pragma once

#include <cstdint>
#include <memory>

#include "app/model_parallel/machine_profile.h"
#include "app/model_parallel/plan.h"
#include "app/model_parallel/stage_times.h"

namespace convoy::app {

class PartitionPlanner {
 public:
  // `whole` is the undivided training step, which was compiled with `options`. `groups` must have
  // stages. All arguments except the profile must outlive the planner. Throws std::runtime_error if
  // it can prove that no placement fits into memory; the message names the limit and what needs
  // more.
  PartitionPlanner(const CompiledSteps& whole, const StepOptions& options, const RankGroups& groups,
                   MachineProfile profile);
  ~PartitionPlanner();

  // The functions below change nothing and may run at the same time in several threads.

  // Returns the largest number of bytes that a rank's arena (app/compile/memory_plan.h) may have;
  // 0 if there is no limit. It is options.memory_limit. If that is 0 or more than the memory that
  // is free on the fullest GPU, it is 15/16 of that memory.
  std::int64_t memory_limit() const;
  // Returns whether one rank can hold the whole step within the memory limit.
  bool fits_one_rank() const;

  // Returns the fastest placement that the partitioner finds with the times of the undivided step's
  // operations; with a memory limit, the first whose arenas fit. Takes up to some seconds. The
  // search is limited in time, so the result may vary. Throws std::runtime_error if it finds no
  // placement that fits. choose() sets the predictions and summaries.
  PartitionPlan place(const MeasuredOps& ops) const;

  // Returns the plan to run: `placed` with its predicted time, or a plan that keeps the whole step
  // on the first rank, if that rank can hold it and the stages are not predicted to be at least 5 %
  // faster. whole_times.ops must be what place() got, and `placed` what it returned: a plan that
  // was sent (plan_message.h) lacks some of it. `stage_times` were measured on the ranks that will
  // run the stages of `placed`.
  PartitionPlan choose(PartitionPlan placed, const WholeStepTimes& whole_times,
                       const PlacedTimes& stage_times) const;

 private:
  struct State;
  const std::unique_ptr<const State> state_;
};

}  // namespace convoy::app
