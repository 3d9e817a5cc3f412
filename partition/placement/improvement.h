// A local search along the critical path of a schedule. It can be stopped at any time. For each
// move it simulates only what the move changes.
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
  // The most moves to try. Unlike a deadline, it makes runs reproducible.
  std::int64_t moves = std::numeric_limits<std::int64_t>::max();
  // The most work to do (work.h). Like `moves`, it makes runs reproducible.
  std::int64_t work = std::numeric_limits<std::int64_t>::max();
  Nanoseconds good_enough = 0;  // the search stops when the makespan is at most this
  // Whether the search accepts any schedule with a smaller memory excess than the one before, even
  // if it is longer. It does so until a schedule fits.
  bool fit_at_any_cost = false;
  std::uint64_t seed = 1;
  // The temperature at the start, as a fraction of the makespan. At this temperature, a move that
  // lengthens the schedule by this fraction is accepted with probability 1/e. If there are few
  // moves per node, the search starts at a lower temperature.
  double temperature = 0.02;
  // The search is stuck after about half as many moves without a new best schedule.
  std::int64_t patience = 4000;
};

struct ImprovementCounts {
  std::int64_t tried = 0, accepted = 0;
};

// Searches by simulated annealing (Kirkpatrick, Gelatt, Vecchi, Science 220, 1983). A move gives
// another device to a node, to a part of the critical path or to a cluster of nodes joined by
// expensive edges, or it swaps two nodes. When the search is stuck, it returns to the best
// placement and makes one or two random moves from there (iterated local search, Lourenço, Martin &
// Stützle, Handbook of Metaheuristics, 2003).
//
// `placement` must have an order. The simulator judges the result: it does not exceed the memory
// limits by more bytes than `placement`. If both exceed them by the same amount, the result is not
// longer.
Placement improve(const CostModel& cost, const Units& units, const Placement& placement,
                  const ImprovementLimits& limits, ImprovementCounts* counts = nullptr);

}  // namespace convoy::partition
