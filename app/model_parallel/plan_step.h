// Plans how a replica's training step is spread over its ranks: times the operations and the links, asks the partitioner,
// and makes sure that every part's arena keeps to the limit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/compile/compiled_steps.h"
#include "app/execute/session.h"
#include "app/model/network.h"
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

// Collective over `world`, whose ranks are replica after replica, each of `parts` ranks: rank 0 plans with the first
// replica's ranks in mind, everybody gets the plan. `threads` of each rank. Throws std::runtime_error on every rank when no placement keeps to
// options.memory_limit: its one line says what exceeds what.
PartitionPlan plan_partition(const Network& network, const SessionOptions& options,
                             const comm::Communicator& world, const RankGroups& groups, int threads);

}  // namespace convoy::app
