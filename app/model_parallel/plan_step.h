// Plans how a replica's training step is spread over its ranks: times the operations and the links, asks the partitioner,
// and makes sure that every part's arena keeps to the limit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/model/network.h"
#include "app/model_parallel/stage_graph.h"
#include "comm/communicator.h"

namespace convoy::app {

struct PartSummary {
  int operations = 0;
  std::int64_t parameters = 0;  // elements
  std::int64_t arena_bytes = 0;
  double busy_ms = 0;  // of a step
  std::string layers;  // "conv1 … layer2.0.conv1", as far as a few words can say it
};

struct PartitionPlan {
  StepPlacement placement;
  double predicted_step_ms = 0;  // of the steps' programs: neither loading nor what ranks do between steps
  double one_rank_ms = 0;        // the same without partition
  std::int64_t one_rank_bytes = 0;
  std::int64_t cut_bytes = 0;  // moved between the parts in a training step
  int transfers = 0;
  double seconds = 0;                                 // that planning took
  double link_latency_ms = 0, link_bytes_per_ms = 0;  // as measured, the worst of each between two parts
  std::vector<PartSummary> parts;
};

// A plan with what it was made of.
struct PlannedStep {
  PartitionPlan plan;
  CompiledSteps whole;  // the undivided step, of which stage_of_steps() gives a rank's share
};

// Compiles the step of `network` and decides how it is spread over a replica's ranks. Rank 0 plans for the first
// replica, and all ranks get its plan. Collective over `world`; `threads` is the number of each rank. Throws
// std::runtime_error on every rank if no placement keeps to options.memory_limit; its line says what exceeds what.
PlannedStep plan_partition(const Network& network, const StepOptions& options,
                           const comm::Communicator& world, const RankGroups& groups, int threads);

}  // namespace convoy::app
