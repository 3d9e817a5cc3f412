// The anytime improvement: a local search on the critical path of the schedule, by incremental re-simulation.
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
  std::int64_t moves = std::numeric_limits<std::int64_t>::max();  // tried; for runs that must repeat
  Nanoseconds good_enough = 0;                                    // stop at this makespan
  std::uint64_t seed = 1;
  double temperature =
      0.03;  // at first, of the makespan: a move that adds that much is taken once in e tries
};

struct ImprovementCounts {
  std::int64_t tried = 0, accepted = 0, nodes_recomputed = 0;
};

// Moves single nodes, runs of the critical path, clusters joined by expensive edges, and swaps, by
// simulated annealing (Kirkpatrick, Gelatt, Vecchi, Science 220, 1983) that returns to the best and
// leaves it by a random move or two where nothing helps any more (iterated local search, Lourenço,
// Martin & Stützle, Handbook of Metaheuristics, 2003). A placement that exceeds a memory limit only
// changes for one that exceeds the limits by no more. Takes a placement with an order; in the
// simulator's eyes the result never exceeds limits by more, nor by as much with a longer makespan.
Placement improve(const CostModel& cost, const Units& units, const Placement& placement,
                  const ImprovementLimits& limits, ImprovementCounts* counts = nullptr);

}  // namespace convoy::partition
