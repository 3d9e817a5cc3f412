// The plan of a training step that is spread over the ranks of a replica (--partition).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/model/network.h"
#include "app/model_parallel/stage_graph.h"
#include "comm/communicator.h"
#include "partition/simulation/machine.h"

namespace convoy::app {

struct StageSummary {
  int operations = 0;
  std::int64_t parameters = 0;  // elements
  std::int64_t arena_bytes = 0;
  double busy_ms = 0;           // time in which the stage computes in a step
  std::string layers;           // the first and the last layer, "conv1 … layer2.0.conv1"
  std::int64_t task_bytes = 0;  // peak memory by the partitioner's model; only on rank 0
};

struct PartitionPlan {
  StepPlacement placement;
  double predicted_step_ms = 0;  // of the programs alone, without loading and work between steps
  double one_rank_ms = 0;        // time of the undivided step on one rank
  std::int64_t one_rank_bytes = 0;
  std::int64_t cut_bytes = 0;  // moved between the stages in a training step
  int transfers = 0;
  double seconds = 0;                                 // duration of the planning
  double link_latency_ms = 0, link_bytes_per_ms = 0;  // the worst of all links between stages
  std::vector<StageSummary> stages;
  std::vector<partition::DeviceIndex> stage_of_task;  // by task of make_step_tasks(); only on rank 0
};

// A plan and the step that it was made for.
struct PlannedStep {
  PartitionPlan plan;
  CompiledSteps whole;  // the undivided step; stage_of_steps() cuts a stage out of it
};

// Compiles the step of `network` and decides how it is spread over a replica's ranks:
//   1. All ranks measure their links and their share of the host, and compile the step.
//   2. Rank 0 checks that memory suffices, times the undivided step and places it.
//   3. All ranks time their stages, first alone and then all at the same time.
//   4. Rank 0 predicts the step from these times. It keeps the step on one rank if that is hardly
//      slower.
// Collective over `world`; every rank gets the plan. `threads`: the number of threads of each rank.
// Throws std::runtime_error on every rank if no placement keeps to options.memory_limit; the
// message names the need and the limit.
PlannedStep plan_partition(const Network& network, const StepOptions& options,
                           const comm::Communicator& world, const RankGroups& groups, int threads);

}  // namespace convoy::app
