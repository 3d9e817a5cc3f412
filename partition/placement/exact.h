// The shortest schedule of a small graph: every choice of devices and every order, by branch and
// bound.
#pragma once

#include <cstdint>
#include <optional>

#include "partition/placement/improvement.h"
#include "partition/placement/units.h"

namespace convoy::partition {

struct ExactSearch {
  std::optional<Placement> placement;  // with an order; within every memory limit
  bool complete = false;               // nothing shorter fits: all of it was seen
};

// Whether a graph is small enough for the search to be worth its time.
bool small_enough(const TaskGraph& graph, const Units& units, DeviceIndex devices);

// Looks for a schedule that is shorter than `shorter_than`, by the simulator's own rules
// (contention and memory included), until all has been seen, `steps` choices were made or the
// deadline has passed.
ExactSearch search_exactly(const CostModel& cost, const Units& units, Nanoseconds shorter_than,
                           std::int64_t steps, Clock::time_point deadline);

}  // namespace convoy::partition
