// Finds what limited a run's step and which rank the others waited for.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "app/training/report/report.h"
#include "comm/communicator.h"

namespace convoy::app {

// The mean step in four parts. A rank that waits for a slower one sees this as communication. So
// communication is taken from the rank that waited least, and all further waiting counts as
// stragglers.
struct Bottleneck {
  double step_ms = 0, compute_ms = 0, communication_ms = 0, input_ms = 0, stragglers_ms = 0;
  int slowest_rank = 0;
  double slowest_behind_ms = 0;      // how much longer it takes than the median rank
  bool slowest_awaits_data = false;  // most of that is waiting for data
  std::string limit;                 // "compute", "communication", "input" or "stragglers": the largest part
};

Bottleneck find_bottleneck(std::span<const RankTimes> ranks);

// Returns such a line: "limited by compute: 71 % of a step of 17.20 ms; exposed communication 20 %,
// input 1 %, stragglers 8 % (slowest: rank 3 on node2, 1.31 ms behind the median)".
std::string describe(const Bottleneck& bottleneck, std::span<const RankPlace> places);

// Returns every rank's times on rank 0 and nothing on the others. Collective.
std::vector<RankTimes> gather_rank_times(const comm::Communicator& ranks, const RankTimes& mine);

}  // namespace convoy::app
