// Tests predicted times of operations that run at the same time. Expected times are computed by
// hand.
#include "app/concurrency/side_by_side.h"

#include <gtest/gtest.h>

#include <array>

#include "app/concurrency/timeline.h"
#include "tests/app/concurrency/loads.h"

namespace convoy::app {
namespace {

double slowdown_of(const SideBySide& side_by_side, std::vector<int> running) {
  return side_by_side.slowdown(running);
}

TEST(SideBySide, WhatFitsTogetherRunsAsFastAsAlone) {
  const std::vector<OpLoad> ops{op(4, 0.5), op(1, 0.25)};
  const SideBySide side_by_side(ops);
  EXPECT_DOUBLE_EQ(slowdown_of(side_by_side, {0}), 1);
  EXPECT_DOUBLE_EQ(slowdown_of(side_by_side, {0, 1}), 1);
  EXPECT_DOUBLE_EQ(side_by_side.pair_ms(0, 1), 4);
}

// Both operations together need 1.5 times the device, so while both run each takes 1.5 times as
// long. The short one ends after 3 ms, when the long one still needs 2 ms.
TEST(SideBySide, ThePairTakesTheWorkOverTheCapacity) {
  const std::vector<OpLoad> ops{op(4, 0.75), op(2, 0.75)};
  const SideBySide side_by_side(ops);
  EXPECT_DOUBLE_EQ(slowdown_of(side_by_side, {0, 1}), 1.5);
  EXPECT_DOUBLE_EQ(side_by_side.pair_ms(0, 1), 5);
  EXPECT_DOUBLE_EQ(side_by_side.pair_ms(1, 0), 5);
  const std::vector<OpLoad> full{op(4, 1), op(2, 1)};
  EXPECT_DOUBLE_EQ(SideBySide(full).pair_ms(0, 1), 6) << "nothing is gained";
}

TEST(SideBySide, TheScarcestResourceDecides) {
  std::vector<OpLoad> ops{op(1, 0.5), op(1, 0.5), op(1, 0.5)};
  ops[0].memory = 0.9, ops[1].memory = 0.9, ops[2].arithmetic = 0.9;
  const SideBySide side_by_side(ops);
  EXPECT_DOUBLE_EQ(slowdown_of(side_by_side, {0, 1}), 1.8);
  EXPECT_DOUBLE_EQ(slowdown_of(side_by_side, {0, 2}), 1);
  EXPECT_DOUBLE_EQ(slowdown_of(side_by_side, {0, 1, 2}), 1.8);
}

// Operations of 4 and 2 ms are measured to take 4.5 ms together: while both run, each is slowed
// down by 1.25. The prediction was 1.5. Later predictions must be multiplied by 1.25 / 1.5.
TEST(SideBySide, MeasuredPairsCorrectThePrediction) {
  const std::vector<OpLoad> ops{op(4, 0.75, 7), op(2, 0.75, 5), op(2, 0.75, 5), op(2, 0.75, 6)};
  SideBySide side_by_side(ops);
  side_by_side.learn(0, 1, 4.5);
  EXPECT_DOUBLE_EQ(side_by_side.pair_ms(0, 1), 4.5);
  EXPECT_DOUBLE_EQ(side_by_side.pair_ms(2, 0), 4.5) << "operation 2 is like operation 1";
  EXPECT_DOUBLE_EQ(side_by_side.pair_ms(0, 3), 5) << "operation 3 is not";
  // The three operations need 2.25 times the device. Only one of their three pairs was measured;
  // the slowdown is corrected by the mean of the three corrections, of which two are 1.
  EXPECT_DOUBLE_EQ(slowdown_of(side_by_side, {0, 1, 3}), 2.25 * (1.25 / 1.5 + 1 + 1) / 3);
  side_by_side.learn(0, 1, 3);  // impossible: operation 0 alone takes 4 ms
  EXPECT_DOUBLE_EQ(side_by_side.pair_ms(0, 1), 4);
}

// Operation 1 starts 1 ms after operation 0. From then on both share the device until 3 ms.
TEST(Timeline, OperationsShareTheDeviceWhileBothRun) {
  const StepLoad load = step({op(2, 1), op(2, 1)}, {});
  const SideBySide side_by_side(load.ops);
  Timeline timeline(load, side_by_side);
  timeline.start(0, 0);
  timeline.start(1, 1);
  EXPECT_DOUBLE_EQ(timeline.end_ms(), 4);
  EXPECT_EQ(timeline.advance(), std::vector{0});
  EXPECT_DOUBLE_EQ(timeline.now(), 3);  // 1 ms alone, then 1 ms of work at half the speed
  EXPECT_EQ(timeline.advance(), std::vector{1});
  EXPECT_DOUBLE_EQ(timeline.now(), 4);
  EXPECT_TRUE(timeline.idle());
}

}  // namespace
}  // namespace convoy::app
