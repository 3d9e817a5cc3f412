// Times a step's operations for the planner: first the undivided step on one rank, then its stages
// on the ranks that will run them, each alone on its host and all at the same time.
#pragma once

#include <cstdint>
#include <vector>

#include "app/compile/compiled_steps.h"
#include "app/model_parallel/plan.h"
#include "app/timing/op_times.h"
#include "comm/communicator.h"

namespace convoy::app {

struct WholeStepTimes {
  MeasuredOps ops;
  double side_by_side = 1;  // time of a step over the sum of its operations; below 1 if lanes overlap
};

// Times the undivided step on this rank while the others wait, within `memory_limit` bytes (0: as
// many as the step has). On a GPU the step is also run as a whole if `fits_one_rank`.
WholeStepTimes time_whole_step(const CompiledSteps& whole, const StepOptions& options,
                               const RankGroups& groups, std::int64_t memory_limit, bool fits_one_rank);

struct StageTimes {              // by node of the stage; nodes that communicate have 0 and 1
  std::vector<double> alone_ms;  // while the host's other ranks wait
  std::vector<double> slowdown;  // how many times as long a processor works while they run
};

// Times the stage alone and together with the other ranks in turns, round for round, so that other
// work on the host disturbs both alike. Uses `arena_bytes` of memory, as the step will. Collective
// over `world`.
StageTimes time_stage(const CompiledGraph& stage, kernels::Backend backend,
                      const kernels::StepControl* control, std::int64_t arena_bytes, int rounds,
                      const comm::Communicator& world);

// The times of all stages, merged.
struct PlacedTimes {
  std::vector<double> alone, slowdown;  // by node of the whole step, as in StageTimes
  std::vector<double> update;           // by stage: its optimizer's ms per element while the others run
};

// Every rank times its stage of the placed step. Collective over `world`. All ranks of a replica
// get the times of all its stages.
PlacedTimes time_stages(const CompiledSteps& whole, const PartitionPlan& plan, const StepOptions& options,
                        const RankGroups& groups, const comm::Communicator& world, int rounds);

}  // namespace convoy::app
