// The anytime improvement: a local search along the critical path of the schedule, which simulates
// only what a move changes.
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
      std::numeric_limits<std::int64_t>::max();                  // the most moves to try; for repeatable runs
  std::int64_t work = std::numeric_limits<std::int64_t>::max();  // the most work (work.h); the same
  Nanoseconds good_enough = 0;  // the search stops at a makespan of this or less
  // Until a schedule fits, take any that exceeds the limits by less, however long it is.
  bool fit_at_any_cost = false;
  std::uint64_t seed = 1;
  // The first temperature as a fraction of the makespan: a move that lengthens the schedule by this
  // fraction is accepted with probability 1/e. It is lower if there are few moves per node.
  double temperature = 0.02;
};

struct ImprovementCounts {
  std::int64_t tried = 0, accepted = 0;
};

// Moves single nodes, stretches of the critical path and clusters joined by expensive edges, and
// swaps nodes, by simulated annealing (Kirkpatrick, Gelatt, Vecchi, Science 220, 1983). If nothing
// else helps, it returns to the best placement and leaves it by one or two random moves (iterated
// local search, Lourenço, Martin & Stützle, Handbook of Metaheuristics, 2003).
// `placement` must have an order. By the simulator, the result exceeds the memory limits by no more
// bytes than `placement` does. If it exceeds them by as many, its makespan is no longer.
Placement improve(const CostModel& cost, const Units& units, const Placement& placement,
                  const ImprovementLimits& limits, ImprovementCounts* counts = nullptr);

}  // namespace convoy::partition
