// Finds the shortest schedule of a small graph over all placements and all orders, by branch and
// bound.
#pragma once

#include <cstdint>
#include <optional>

#include "partition/placement/improvement.h"
#include "partition/placement/units.h"

namespace convoy::partition {

struct ExactSearchResult {
  std::optional<Placement> placement;  // placement with an order within all memory limits
  bool complete = false;               // whether all schedules were examined, so no shorter one fits
};

// Returns whether a graph is small enough for search_exactly().
bool small_enough(const TaskGraph& graph, DeviceIndex devices);

// Searches for a schedule shorter than `shorter_than`, with the simulator's rules (including
// contention and memory). Stops when all schedules were examined, after `steps` choices, or at the
// deadline.
ExactSearchResult search_exactly(const CostModel& cost, const Units& units, Nanoseconds shorter_than,
                                 std::int64_t steps, Clock::time_point deadline);

}  // namespace convoy::partition
