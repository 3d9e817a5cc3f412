// Decides from measured times whether the ranks of a replica (plan.h) divide a training step among
// them, and how. plan_partition() (plan.h) uses a planner on rank 0 of a job, as follows. The
// planner itself neither measures nor communicates.
//
//   PartitionPlanner planner(whole, options, groups, profile);
//   const MeasuredOps ops = time_ops(whole, options, groups, planner.memory_limit());
//   const StepPlacement placement = planner.place(ops);
//   double concurrency_ratio = 1;
//   if (planner.fits_one_rank())
//     concurrency_ratio = time_concurrency(whole, options, ops.passed);
//   // Send `placement` to all ranks (plan_message.h). All of them call time_stages() with it, and
//   // with ops.rounds on rank 0 and 0 rounds on the others. Rank 0 gets `placed_times`.
//   const PartitionPlan plan = planner.choose(concurrency_ratio, placed_times);
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
  // trains. groups.stages and groups.replicas are set. `profile` is what measure_machine() returned
  // on rank 0. All arguments except the profile must outlive the planner. Throws std::runtime_error
  // if it can prove that no placement fits into memory; the message names the limit and what needs
  // more.
  PartitionPlanner(const CompiledSteps& whole, const StepOptions& options, const RankGroups& groups,
                   MachineProfile profile);
  ~PartitionPlanner();

  // Returns how many bytes the arena (app/compile/memory_plan.h) of a rank may have; 0 if there is
  // no limit. On hosts it is options.memory_limit. On GPUs it is at most the free memory of the GPU
  // that has the least; without options.memory_limit, or with a larger one, it is 15/16 of that.
  std::int64_t memory_limit() const;
  // Returns whether one rank can hold the whole step within the memory limit.
  bool fits_one_rank() const;

  // Searches for the fastest placement of the operations. `ops` is what time_ops() returned: the
  // times of the operations in the whole step. A search ends after about 0.3 s, so equal inputs may
  // give different placements. Under a memory limit, as always on GPUs, up to 12 searches are made,
  // with different limits, until the arenas fit; with the planning of the arenas this may take ten
  // seconds. Throws std::runtime_error if no placement that fits is found. Meanwhile another thread
  // may call the functions above, for example to time whole steps, but not choose().
  StepPlacement place(MeasuredOps ops);

  // Returns the plan to run: the placement that the last place() found, or one that keeps the whole
  // step on the first rank (PartitionPlan::transfers is 0). It keeps the step whole if one rank can
  // hold it and stages are not predicted to be at least 5 % faster. `concurrency_ratio` is what
  // time_concurrency() returned, or 1 if one rank cannot hold the step. `placed_times` is what
  // time_stages() returned for the placement. Throws std::logic_error unless the last place() has
  // succeeded.
  PartitionPlan choose(double concurrency_ratio, const PlacedTimes& placed_times) const;

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace convoy::app
