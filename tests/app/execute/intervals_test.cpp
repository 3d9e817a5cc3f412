#include "app/execute/intervals.h"

#include <gtest/gtest.h>

#include <vector>

namespace convoy::app {
namespace {

double covered(std::vector<Interval> intervals) { return covered_ms(intervals); }

TEST(Intervals, OverlappingTimeCountsOnce) {
  constexpr std::uint64_t ms = 1'000'000;
  EXPECT_EQ(covered({}), 0);
  EXPECT_DOUBLE_EQ(covered({{5 * ms, 7 * ms}, {1 * ms, 2 * ms}}), 3);
  EXPECT_DOUBLE_EQ(covered({{1 * ms, 9 * ms}, {2 * ms, 4 * ms}, {8 * ms, 10 * ms}}), 9);
  EXPECT_DOUBLE_EQ(covered({{3 * ms, 3 * ms}, {6 * ms, 5 * ms}, {5 * ms, 6 * ms}}), 1)
      << "empty and reversed";
}

}  // namespace
}  // namespace convoy::app
