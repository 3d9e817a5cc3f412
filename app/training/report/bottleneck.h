// Finds the activity that limited the speed of a run's steps, and the slowest rank.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "app/training/report/report.h"
#include "comm/communicator.h"

namespace convoy::app {

// Divides the mean time of a step into four parts: compute, communication, input (waiting for data)
// and stragglers (waiting for slower ranks). While a rank communicates, it cannot tell how long it
// only waits for a slower rank. So the shortest communication time of any rank counts as
// communication, and the rest of the step's time as stragglers.
struct Bottleneck {
  double step_ms = 0, compute_ms = 0, communication_ms = 0, input_ms = 0, stragglers_ms = 0;
  int slowest_rank = 0;
  // How many milliseconds longer than the median rank the slowest rank takes for a step.
  double slowest_behind_ms = 0;
  // Whether the slowest rank is slow mainly because it waits for its data.
  bool slowest_awaits_data = false;
  // The name of the largest part: "compute", "communication", "input" or "stragglers".
  std::string limit;
};

Bottleneck find_bottleneck(std::span<const RankTimes> ranks);

// Returns a line such as "limited by compute: 71 % of a step of 17.20 ms; exposed communication 20
// %, input 1 %, stragglers 8 % (slowest: rank 3 on node2, 1.31 ms behind the median)".
std::string describe(const Bottleneck& bottleneck, std::span<const RankPlace> places);

// Returns every rank's times on rank 0, and an empty vector on the other ranks. Collective.
std::vector<RankTimes> gather_rank_times(const comm::Communicator& ranks, const RankTimes& mine);

}  // namespace convoy::app
