// Rank 0's plan of a partitioned step, and what every rank times for it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/model_parallel/machine_profile.h"
#include "app/model_parallel/plan_step.h"
#include "app/model_parallel/stage_times.h"
#include "app/model_parallel/step_tasks.h"
#include "app/timing/op_times.h"
#include "kernels/device/arena.h"
#include "partition/partition.h"

namespace convoy::app {

// Of the whole step, every node on the rank that it was given to.
struct PlacedTimes {
  std::vector<double> alone, slowdown;  // of every node of the step, as in StageTimes
  std::vector<double> update;           // of every part, per element, beside the others
};

class Planner {
 public:
  // `whole` is the undivided step, compiled with `options`. `options` and `groups` must outlive the planner.
  Planner(CompiledSteps whole, const StepOptions& options, const RankGroups& groups,
          MachineProfile machine_profile);
  Planner(const Planner&) = delete;
  Planner& operator=(const Planner&) = delete;

  // On rank 0, in this order. Throws std::runtime_error for what memory alone rules out, which needs no clock: an operation that no
  // rank can hold would not even be timed.
  void refuse_impossible();
  void time_alone();  // while the other ranks wait as they wait in a step
  PartitionPlan plan();
  double predict(const PlacedTimes& times);  // ms of a step of that plan
  // The plan; or where one rank alone has the memory and would be hardly slower than predicted, all of the step on the first part.
  PartitionPlan decide(double predicted_ms);

  const CompiledSteps& whole() const { return whole_; }

  // On every rank: its part, to be timed.
  void take_part(const PartitionPlan& plan, int part);
  // Collective over `world`.
  StageTimes time_stage(const comm::Communicator& world) const;
  // A part's times where they are in the whole step, 0 for what others run; and its update, which in a step, too, runs beside
  // the others'.
  PlacedTimes to_whole_step(const StageTimes& of_part, int part);

 private:
  const kernels::StepControl* control() const;
  int buffers_of_update() const;
  TaskCosts task_costs() const;
  std::int64_t arena_bytes(const CompiledSteps& steps) const;
  bool fits_one_rank() const;
  std::string where() const;
  void set_limits(const std::vector<partition::Bytes>& limits);
  partition::PartitionResult partition_tasks() const;
  void place();
  void take(partition::PartitionResult result);
  void summarise();
  void keep_whole();

  const StepOptions& options_;
  const std::int64_t memory_limit_;  // of a part's arena; 0: none
  const RankGroups& groups_;
  const int parts_;
  MachineProfile machine_profile_;
  partition::Machine machine_;
  kernels::Arena control_memory_;  // one StepControl, where the kernels read it
  const CompiledSteps whole_;
  StepDependences dependences_;
  MeasuredOps alone_;
  double side_by_side_ = 1;  // a step of one rank, of the time that its operations take one after the other
  RankPrograms programs_;
  CompiledGraph part_;
  std::int64_t arena_bytes_ = 0;     // of this rank's part
  std::int64_t one_rank_bytes_ = 0;  // of an arena for the whole step
  partition::TaskGraph tasks_;
  PartitionPlan plan_;
  std::vector<partition::DeviceIndex> device_of_;  // of every task
  std::vector<partition::Bytes> peak_;             // of every part, as the simulator has it
};

}  // namespace convoy::app
