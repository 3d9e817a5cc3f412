// Decides from measured times how the training step of a replica (plan.h) is partitioned over the
// replica's ranks. The planner asks the partitioner for a placement and checks whether the arenas
// of the stages fit into memory. It neither measures nor communicates, so its result depends only
// on its arguments.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/model_parallel/machine_profile.h"
#include "app/model_parallel/plan.h"
#include "app/model_parallel/stage_times.h"
#include "app/model_parallel/step_tasks.h"
#include "partition/partition.h"

namespace convoy::app {

class Planner {
 public:
  // `whole` is the undivided step, which was compiled with `options`. All arguments except the
  // profile must outlive the planner.
  Planner(const CompiledSteps& whole, const StepOptions& options, const RankGroups& groups,
          MachineProfile profile);

  // Returns the largest number of bytes that a rank's arena may have; 0 if there is no limit.
  std::int64_t memory_limit() const { return memory_limit_; }
  bool fits_one_rank() const { return memory_limit_ == 0 || one_rank_bytes_ <= memory_limit_; }
  // Throws std::runtime_error if no placement can fit into memory. Needs no measured times.
  void refuse_impossible() const;

  // Returns the fastest placement that the partitioner finds with the times of the undivided step's
  // operations. Throws std::runtime_error if it finds no placement that keeps to the memory limit.
  PartitionPlan plan(const MeasuredOps& ops) const;
  // Returns the predicted milliseconds of a step. `placed` are the times of the plan's stages,
  // measured on the ranks that will run them.
  double predict(const PartitionPlan& plan, const MeasuredOps& ops, const PlacedTimes& placed) const;
  // Returns `plan` with `predicted_ms` as its time, and what a report says about it. If the step
  // fits on one rank and `plan` is predicted to be hardly faster, the plan returned keeps the whole
  // step on the first rank. `side_by_side` is the result of time_side_by_side().
  PartitionPlan decide(PartitionPlan plan, double predicted_ms, const MeasuredOps& ops,
                       double side_by_side) const;

 private:
  int buffers_of_update() const;
  partition::TaskGraph tasks_of(const OpTimes& times) const;
  std::int64_t arena_bytes(const CompiledSteps& steps) const;
  std::string where() const;
  partition::Machine machine_with(const std::vector<partition::Bytes>& limits) const;
  partition::PartitionResult partition_tasks(const partition::TaskGraph& tasks,
                                             const std::vector<partition::Bytes>& limits) const;
  PartitionPlan place(const partition::TaskGraph& tasks) const;
  PartitionPlan plan_of(const partition::TaskGraph& tasks, const partition::PartitionResult& result) const;
  PartitionPlan keep_whole(const partition::TaskGraph& tasks) const;
  void complete(PartitionPlan& plan) const;

  const CompiledSteps& whole_;
  const StepOptions& options_;
  const RankGroups& groups_;
  const MachineProfile profile_;
  const std::int64_t memory_limit_;
  const int stages_;
  const StepDependences dependences_;
  std::int64_t one_rank_bytes_ = 0;  // bytes of the arena if one rank runs the whole step
};

}  // namespace convoy::app
