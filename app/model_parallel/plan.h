// Plans which rank of a replica runs which operations of a training step (--partition). A replica
// is a group of ranks that computes whole steps. Each of its ranks runs one stage, which is a part
// of the step's operations (RankGroups, compile/step_options.h).
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
  std::int64_t parameters = 0;  // elements of the stage's parameters
  std::int64_t arena_bytes = 0;
  double busy_ms = 0;  // milliseconds per step in which the stage computes
  // The first and the last layer, for example "conv1 … layer2.0.conv1".
  std::string layers;
};

struct PartitionPlan {
  StepPlacement placement;
  // The predicted milliseconds of a step, without loading images and without work between steps.
  double predicted_step_ms = 0;
  double one_rank_ms = 0;  // milliseconds of the whole step on one rank
  std::int64_t one_rank_bytes = 0;
  std::int64_t cut_bytes = 0;  // bytes that move between stages in a training step
  int transfers = 0;           // tensors that move in a training step; 0 if one rank runs all of it
  // The longest latency and the lowest rate of all links between stages.
  double link_latency_ms = 0, link_bytes_per_ms = 0;
  std::vector<StageSummary> stages;
  double seconds = 0;  // how long plan_partition() took, which sets this
};

// A plan and the step that the plan was made for.
struct PlannedStep {
  PartitionPlan plan;
  // The undivided step, from which stage_of_steps() cuts a stage.
  CompiledSteps whole;
};

// Compiles the step of `network` and decides how it is partitioned over the ranks of a replica:
//   1. All ranks measure their links and find which processors they share, and compile the step.
//   2. Rank 0 checks that memory suffices, times the operations of the undivided step and places
//      them. While it searches, it times whole steps.
//   3. All ranks time their stages, first each alone and then all at the same time.
//   4. Rank 0 predicts the step from these times. If one rank is hardly slower than the stages, the
//      step stays on one rank.
// Collective over `world`; every rank gets the plan. `threads` is the number of threads of each
// rank. Throws std::runtime_error on every rank if no placement keeps to options.memory_limit. The
// message names the needed memory and the limit.
PlannedStep plan_partition(const Network& network, const StepOptions& options,
                           const comm::Communicator& world, const RankGroups& groups, int threads);

}  // namespace convoy::app
