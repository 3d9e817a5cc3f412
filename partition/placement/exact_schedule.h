// Finds the shortest schedule of a small graph, over every choice of devices and every order, by
// branch and bound.
#pragma once

#include <cstdint>
#include <optional>

#include "partition/placement/improvement.h"
#include "partition/placement/units.h"

namespace convoy::partition {

struct ExactSearch {
  std::optional<Placement> placement;  // placement with an order, within every memory limit
  bool complete = false;               // whether all schedules were seen, so that no shorter one fits
};

// Returns whether a graph is so small that the search is worth its time.
bool small_enough(const TaskGraph& graph, const Units& units, DeviceIndex devices);

// Looks for a schedule that is shorter than `shorter_than`, by the simulator's own rules
// (contention and memory included). Stops when all schedules have been seen, after `steps` choices,
// or at the deadline.
ExactSearch search_exactly(const CostModel& cost, const Units& units, Nanoseconds shorter_than,
                           std::int64_t steps, Clock::time_point deadline);

}  // namespace convoy::partition
