#include "app/execute/intervals.h"

#include <algorithm>

namespace convoy::app {

double covered_ms(std::span<Interval> intervals) {
  std::ranges::sort(intervals, {}, &Interval::begin);
  std::uint64_t covered = 0, until = 0;
  for (const auto& [begin, end] : intervals) {
    const std::uint64_t from = std::max(begin, until);
    if (end <= from) continue;
    covered += end - from;
    until = end;
  }
  return static_cast<double>(covered) * 1e-6;
}

}  // namespace convoy::app
