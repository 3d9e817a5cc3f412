// The anytime improvement, which can be stopped at any time: a local search along the critical path
// of the schedule. It simulates only what a move changes.
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
  std::int64_t moves = std::numeric_limits<std::int64_t>::max();  // most moves to try, for repeatable runs
  // Most work to do (work.h), which also makes runs repeatable.
  std::int64_t work = std::numeric_limits<std::int64_t>::max();
  Nanoseconds good_enough = 0;  // the search stops at a makespan of this or less
  // Whether the search accepts every schedule that exceeds the memory limits by less than the
  // schedule before it, however long it is. It does so until a schedule fits.
  bool fit_at_any_cost = false;
  std::uint64_t seed = 1;
  // The temperature at the start, as a fraction of the makespan. A move that lengthens the schedule
  // by this fraction is then accepted with probability 1/e. With few moves per node the search
  // starts lower.
  double temperature = 0.02;
};

struct ImprovementCounts {
  std::int64_t tried = 0, accepted = 0;
};

// Searches by simulated annealing (Kirkpatrick, Gelatt, Vecchi, Science 220, 1983). A move gives
// another device to a node, to part of the critical path or to a cluster of nodes joined by
// expensive edges, or swaps two nodes. If nothing else helps, it returns to the best placement and
// leaves it by one or two random moves (iterated local search, Lourenço, Martin & Stützle, Handbook
// of Metaheuristics, 2003).
// `placement` must have an order. The result, as the simulator sees it, exceeds the memory limits
// by no more bytes than `placement`. If by as many, it is no longer.
Placement improve(const CostModel& cost, const Units& units, const Placement& placement,
                  const ImprovementLimits& limits, ImprovementCounts* counts = nullptr);

}  // namespace convoy::partition
