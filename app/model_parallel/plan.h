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
  double busy_ms = 0;           // of a step
  std::string layers;           // the first and the last, "conv1 … layer2.0.conv1"
  std::int64_t task_bytes = 0;  // the peak that the partitioner saw; on rank 0 alone
};

struct PartitionPlan {
  StepPlacement placement;
  double predicted_step_ms = 0;  // of the steps' programs: neither loading nor what ranks do between steps
  double one_rank_ms = 0;        // the same without partition
  std::int64_t one_rank_bytes = 0;
  std::int64_t cut_bytes = 0;  // moved between the stages in a training step
  int transfers = 0;
  double seconds = 0;                                 // that planning took
  double link_latency_ms = 0, link_bytes_per_ms = 0;  // as measured, the worst of each between two stages
  std::vector<StageSummary> stages;
  std::vector<partition::DeviceIndex> stage_of_task;  // of make_step_tasks(); on rank 0 alone
};

// A plan and the step that it was made for.
struct PlannedStep {
  PartitionPlan plan;
  CompiledSteps whole;  // the undivided step, of which stage_of_steps() gives a rank's share
};

// Compiles the step of `network` and decides how it is spread over a replica's ranks:
//   1. All ranks measure their links and share of the host, and compile the step.
//   2. Rank 0 refuses what memory rules out, times the undivided step and places it.
//   3. All ranks time their stages, each alone and all side by side.
//   4. Rank 0 predicts the step from these times and keeps it on one rank if that is hardly slower.
// Collective over `world`; every rank gets the plan. `threads` is the number of each rank. Throws std::runtime_error on
// every rank if no placement keeps to options.memory_limit; its line says what exceeds what.
PlannedStep plan_partition(const Network& network, const StepOptions& options,
                           const comm::Communicator& world, const RankGroups& groups, int threads);

}  // namespace convoy::app
