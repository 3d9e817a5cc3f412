// Intervals of time on one clock.
#pragma once

#include <cstdint>
#include <span>

namespace convoy::app {

struct Interval {
  std::uint64_t begin = 0, end = 0;  // nanoseconds
};

// Returns the milliseconds in which at least one interval was open. Sorts the intervals. An
// interval that ends before it begins counts as empty.
double covered_ms(std::span<Interval> intervals);

}  // namespace convoy::app
