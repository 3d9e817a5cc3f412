// Stretches of time on one clock.
#pragma once

#include <cstdint>
#include <span>

namespace convoy::app {

struct Interval {
  std::uint64_t begin = 0, end = 0;  // nanoseconds
};

// Milliseconds in which at least one of the intervals was open. Sorts them; one that ends before it begins is empty.
double covered_ms(std::span<Interval> intervals);

}  // namespace convoy::app
