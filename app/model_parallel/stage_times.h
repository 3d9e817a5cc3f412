// Times of a step's operations for the planner: of the undivided step on one rank, and of its stages on the ranks that
// will run them, each alone on its host and all side by side.
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
  double side_by_side = 1;  // a step's time over the sum of its operations' times; below 1 if lanes overlap
};

// Times the undivided step on this rank while the others wait, within `memory_limit` bytes (0: as many as it has). The
// step is also run as a whole if that is worth it on this backend and `fits_one_rank`.
WholeStepTimes time_whole_step(const CompiledSteps& whole, const StepOptions& options,
                               const RankGroups& groups, std::int64_t memory_limit, bool fits_one_rank);

struct StageTimes {              // of every node of the stage; 0 and 1 for nodes that communicate
  std::vector<double> alone_ms;  // on a processor of its own, while the host's other ranks wait
  std::vector<double> slowdown;  // how many times as long a processor works beside them
};

// Measures alone and side by side in turns, round for round, so that other work on the host disturbs both alike. Each
// uses `arena_bytes`, as much memory as the step will have. Collective over `world`.
StageTimes time_stage(const CompiledGraph& stage, kernels::Backend backend,
                      const kernels::StepControl* control, std::int64_t arena_bytes, int rounds,
                      const comm::Communicator& world);

// The times of all stages, as those of the whole step's nodes.
struct PlacedTimes {
  std::vector<double> alone, slowdown;  // of every node of the step, as in StageTimes
  std::vector<double> update;           // of every stage's optimizer, ms per element beside the others
};

// Every rank times its stage of the placed step. Collective over `world`; all ranks of a replica get its times.
PlacedTimes time_stages(const CompiledSteps& whole, const PartitionPlan& plan, const StepOptions& options,
                        const RankGroups& groups, const comm::Communicator& world, int rounds);

}  // namespace convoy::app
