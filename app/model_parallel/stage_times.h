// Times a step's operations for the planner. First one rank times the undivided step. Then the
// ranks time the stages (stage_graph.h) that they will run, each alone on its host and all at the
// same time.
#pragma once

#include <cstdint>
#include <vector>

#include "app/compile/compiled_steps.h"
#include "app/model_parallel/stage_graph.h"
#include "app/timing/op_times.h"
#include "comm/communicator.h"

namespace convoy::app {

// Times the operations of the undivided step on this rank while the other ranks wait. Uses at most
// `memory_limit` bytes (0: the bytes of all its tensors).
MeasuredOps time_ops(const CompiledSteps& whole, const StepOptions& options, const RankGroups& groups,
                     std::int64_t memory_limit);

// Times whole steps on this rank. Returns the time of a step divided by the sum of the times of its
// operations, `ops`. It is below 1 if some operations run at the same time (execute/lane_plan.h).
// Returns 1 on CPUs, where operations run one after another. Needs memory for the whole step.
double time_concurrency(const CompiledSteps& whole, const StepOptions& options, const OpTimes& ops);

// The times of the nodes of a stage. Nodes that communicate have the time 0 and the slowdown 1.
struct StageTimes {
  // Milliseconds while the host's other ranks wait.
  std::vector<double> alone_ms;
  // The factor by which a node's processor time grows while the other ranks run.
  std::vector<double> slowdown;
};

// Times the stage alone and together with the other ranks. Rounds alone and rounds together
// alternate, so that other work on the host disturbs both in the same way. Uses `arena_bytes` of
// memory, as much as the stage's arena will have. Collective over `world`.
StageTimes time_stage(const CompiledGraph& stage, kernels::Backend backend,
                      const kernels::StepControl* control, std::int64_t arena_bytes, int rounds,
                      const comm::Communicator& world);

// The measured times of all stages.
struct PlacedTimes {
  // One element per node of the whole step, with the meaning of StageTimes::alone_ms and
  // StageTimes::slowdown.
  std::vector<double> alone, slowdown;
  // Milliseconds of each stage's optimizer update per element of the parameters, while the other
  // ranks run.
  std::vector<double> update;
};

// Times on every rank the stage that the placement assigns to this rank. All ranks of a replica get
// the times of all its stages. Collective over `world`.
PlacedTimes time_stages(const CompiledSteps& whole, const StepPlacement& placement,
                        const StepOptions& options, const RankGroups& groups, const comm::Communicator& world,
                        int rounds);

}  // namespace convoy::app
