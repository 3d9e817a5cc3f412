// Finds what limited the steps of a run, and for which rank the others waited.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "app/training/report/report.h"
#include "comm/communicator.h"

namespace convoy::app {

// Divides the mean step into four parts. A rank that waits for a slower rank measures this as
// communication. So the communication is that of the rank that waited least, and all other waiting
// counts as stragglers.
struct Bottleneck {
  double step_ms = 0, compute_ms = 0, communication_ms = 0, input_ms = 0, stragglers_ms = 0;
  int slowest_rank = 0;
  // The milliseconds that the slowest rank needs more than the median rank.
  double slowest_behind_ms = 0;
  // Whether the slowest rank is slow mainly because it waits for data.
  bool slowest_awaits_data = false;
  // The largest part: "compute", "communication", "input" or "stragglers".
  std::string limit;
};

Bottleneck find_bottleneck(std::span<const RankTimes> ranks);

// Returns a line such as "limited by compute: 71 % of a step of 17.20 ms; exposed communication 20
// %, input 1 %, stragglers 8 % (slowest: rank 3 on node2, 1.31 ms behind the median)".
std::string describe(const Bottleneck& bottleneck, std::span<const RankPlace> places);

// Returns every rank's times on rank 0 and nothing on the others. Collective.
std::vector<RankTimes> gather_rank_times(const comm::Communicator& ranks, const RankTimes& mine);

}  // namespace convoy::app
