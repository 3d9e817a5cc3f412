// Computes the time that several intervals cover together.
#pragma once

#include <cstdint>
#include <span>

namespace convoy::app {

struct Interval {
  std::uint64_t begin = 0, end = 0;  // nanoseconds on one clock
};

// Returns the milliseconds that are covered by at least one interval. Sorts the intervals. An
// interval that ends before it begins counts as empty.
double covered_ms(std::span<Interval> intervals);

}  // namespace convoy::app
