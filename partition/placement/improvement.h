// The anytime improvement: a local search on the critical path of the schedule, with incremental
// simulation.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>

#include "partition/placement/units.h"
#include "partition/simulation/simulator.h"

namespace convoy::partition {

using Clock = std::chrono::steady_clock;

struct ImprovementLimits {
  Clock::time_point deadline = Clock::time_point::max();
  std::int64_t moves =
      std::numeric_limits<std::int64_t>::max();  // the most moves to try; for repeatable runs
  Nanoseconds good_enough = 0;                   // stop at this makespan
  std::uint64_t seed = 1;
  // At first, as a fraction of the makespan, if there are many moves for each node: a move that
  // adds so much is accepted once in e tries.
  double temperature = 0.03;
};

struct ImprovementCounts {
  std::int64_t tried = 0, accepted = 0, nodes_recomputed = 0;
};

// Moves single nodes, runs of the critical path and clusters joined by expensive edges, and swaps
// nodes, by simulated annealing (Kirkpatrick, Gelatt, Vecchi, Science 220, 1983). It returns to the
// best placement, and leaves it by one or two random moves if nothing else helps (iterated local
// search, Lourenço, Martin & Stützle, Handbook of Metaheuristics, 2003).
// `placement` must have an order. A placement that exceeds a memory limit only changes for one that
// exceeds the limits by no more. So by the simulator the result never exceeds limits by more than
// `placement`, nor by as much with a longer makespan.
Placement improve(const CostModel& cost, const Units& units, const Placement& placement,
                  const ImprovementLimits& limits, ImprovementCounts* counts = nullptr);

}  // namespace convoy::partition
