// Decides from measured times how the training step of a replica (plan.h) is partitioned over the
// replica's ranks, or that one rank runs all of it. The planner neither measures nor communicates,
// so its results depend only on its arguments. plan_partition() measures and calls it.
#pragma once

#include <cstdint>
#include <memory>

#include "app/model_parallel/machine_profile.h"
#include "app/model_parallel/plan.h"
#include "app/model_parallel/stage_times.h"

namespace convoy::app {

class Planner {
 public:
  // `whole` is the undivided step, which was compiled with `options`. All arguments except the
  // profile must outlive the planner. Throws std::runtime_error if no placement can fit into
  // memory; the message names the limit and what needs more.
  Planner(const CompiledSteps& whole, const StepOptions& options, const RankGroups& groups,
          MachineProfile profile);
  ~Planner();

  // Returns the largest number of bytes that a rank's arena may have; 0 if there is no limit.
  std::int64_t memory_limit() const;
  // Returns whether one rank can hold the whole step within the memory limit.
  bool fits_one_rank() const;

  // Returns the fastest placement that the partitioner finds with the times of the undivided step's
  // operations. Throws std::runtime_error if it finds none that keeps to the memory limit.
  PartitionPlan place(const MeasuredOps& ops) const;

  // Returns the plan to run: `placed` with its predicted time, or a plan that keeps the whole step
  // on the first rank, if that rank can hold the step and is predicted to be hardly slower.
  // `stages` are the times of the stages of `placed`, measured on the ranks that will run them.
  PartitionPlan choose(PartitionPlan placed, const WholeStepTimes& whole, const PlacedTimes& stages) const;

 private:
  struct State;
  const std::unique_ptr<const State> state_;
};

}  // namespace convoy::app
