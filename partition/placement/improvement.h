// The anytime improvement: a local search on the critical path of the schedule, by incremental re-simulation.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
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
  std::function<bool(const Placement&)>
      accept;  // memory limits, for one: asked before a placement becomes the best
};

struct ImprovementCounts {
  std::int64_t tried = 0, accepted = 0, nodes_recomputed = 0;
};

// Moves single nodes, runs of the critical path, clusters joined by expensive edges, and swaps, accepting
// slightly longer schedules at first (threshold accepting, Dueck & Scheuer, J. Comput. Phys. 90, 1990), and, where nothing
// helps any more or `accept` forbids what does, one or two random moves whatever they cost (iterated local search, Lourenço,
// Martin & Stützle, Handbook of Metaheuristics, 2003). Takes a placement with an order; the result's simulated makespan is
// never longer.
Placement improve(const CostModel& cost, const Units& units, const Placement& placement,
                  const ImprovementLimits& limits, ImprovementCounts* counts = nullptr);

}  // namespace convoy::partition
