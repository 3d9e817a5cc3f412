// Times of operations side by side, computed by hand.
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

// 1.5 devices' worth of blocks: while both run they are 1.5 times as slow. The short one ends after
// 3 ms, when 2 ms of the long one are left.
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

// Measured: 4 and 2 ms take 4.5 ms together, so the pair is 1.25 times as slow as alone, where 1.5
// was predicted.
TEST(SideBySide, MeasuredPairsCorrectThePrediction) {
  const std::vector<OpLoad> ops{op(4, 0.75, 7), op(2, 0.75, 5), op(2, 0.75, 5), op(2, 0.75, 6)};
  SideBySide side_by_side(ops);
  side_by_side.learn(0, 1, 4.5);
  EXPECT_DOUBLE_EQ(side_by_side.pair_ms(0, 1), 4.5);
  EXPECT_DOUBLE_EQ(side_by_side.pair_ms(2, 0), 4.5) << "operation 2 is like operation 1";
  EXPECT_DOUBLE_EQ(side_by_side.pair_ms(0, 3), 5) << "operation 3 is not";
  // 2.25 devices' worth, times the mean of the corrections of the three pairs.
  EXPECT_DOUBLE_EQ(slowdown_of(side_by_side, {0, 1, 3}), 2.25 * (1.25 / 1.5 + 1 + 1) / 3);
  side_by_side.learn(0, 1, 3);  // less than the longer one alone: a disturbed measurement
  EXPECT_DOUBLE_EQ(side_by_side.pair_ms(0, 1), 4);
}

// The two share the device from 0 to 3 ms; the first one's delay ends at 1 ms.
TEST(Timeline, OperationsShareTheDeviceWhileBothRun) {
  const StepLoad load = step({op(2, 1), op(2, 1)}, {});
  const SideBySide side_by_side(load.ops);
  Timeline timeline(load, side_by_side);
  timeline.start(0, 0);
  timeline.start(1, 1);
  EXPECT_DOUBLE_EQ(timeline.end_ms(), 4);
  EXPECT_EQ(timeline.advance(), std::vector{0});
  EXPECT_DOUBLE_EQ(timeline.now(), 3);  // 1 ms alone, and the other half at half the speed
  EXPECT_EQ(timeline.advance(), std::vector{1});
  EXPECT_DOUBLE_EQ(timeline.now(), 4);
  EXPECT_TRUE(timeline.idle());
}

}  // namespace
}  // namespace convoy::app
