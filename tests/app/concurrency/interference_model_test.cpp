// Tests predicted times of operations that run at the same time. Expected times are computed by
// hand.
#include "app/concurrency/interference_model.h"

#include <gtest/gtest.h>

#include <array>

#include "app/concurrency/concurrency_simulator.h"
#include "tests/app/concurrency/loads.h"

namespace convoy::app {
namespace {

double slowdown_of(const InterferenceModel& interference, std::vector<int> running) {
  return interference.slowdown(running);
}

TEST(InterferenceModel, WhatFitsTogetherRunsAsFastAsAlone) {
  const std::vector<OpLoad> ops{op(4, 0.5), op(1, 0.25)};
  const InterferenceModel interference(ops);
  EXPECT_DOUBLE_EQ(slowdown_of(interference, {0}), 1);
  EXPECT_DOUBLE_EQ(slowdown_of(interference, {0, 1}), 1);
  EXPECT_DOUBLE_EQ(interference.pair_ms(0, 1), 4);
}

// Both operations together need 1.5 times the device, so while both run each takes 1.5 times as
// long. The short one ends after 3 ms, when the long one still needs 2 ms.
TEST(InterferenceModel, ThePairTakesTheWorkOverTheCapacity) {
  const std::vector<OpLoad> ops{op(4, 0.75), op(2, 0.75)};
  const InterferenceModel interference(ops);
  EXPECT_DOUBLE_EQ(slowdown_of(interference, {0, 1}), 1.5);
  EXPECT_DOUBLE_EQ(interference.pair_ms(0, 1), 5);
  EXPECT_DOUBLE_EQ(interference.pair_ms(1, 0), 5);
  const std::vector<OpLoad> full{op(4, 1), op(2, 1)};
  EXPECT_DOUBLE_EQ(InterferenceModel(full).pair_ms(0, 1), 6) << "nothing is gained";
}

TEST(InterferenceModel, TheScarcestResourceDecides) {
  std::vector<OpLoad> ops{op(1, 0.5), op(1, 0.5), op(1, 0.5)};
  ops[0].memory = 0.9, ops[1].memory = 0.9, ops[2].arithmetic = 0.9;
  const InterferenceModel interference(ops);
  EXPECT_DOUBLE_EQ(slowdown_of(interference, {0, 1}), 1.8);
  EXPECT_DOUBLE_EQ(slowdown_of(interference, {0, 2}), 1);
  EXPECT_DOUBLE_EQ(slowdown_of(interference, {0, 1, 2}), 1.8);
}

// Operations of 4 and 2 ms are measured to take 4.5 ms together: while both run, each is slowed
// down by 1.25. The prediction was 1.5. Later predictions must be multiplied by 1.25 / 1.5.
TEST(InterferenceModel, MeasuredPairsCorrectThePrediction) {
  const std::vector<OpLoad> ops{op(4, 0.75, 7), op(2, 0.75, 5), op(2, 0.75, 5), op(2, 0.75, 6)};
  InterferenceModel interference(ops);
  interference.learn(0, 1, 4.5);
  EXPECT_DOUBLE_EQ(interference.pair_ms(0, 1), 4.5);
  EXPECT_DOUBLE_EQ(interference.pair_ms(2, 0), 4.5) << "operation 2 is like operation 1";
  EXPECT_DOUBLE_EQ(interference.pair_ms(0, 3), 5) << "operation 3 is not";
  // The three operations need 2.25 times the device. Only one of their three pairs was measured;
  // the slowdown is corrected by the mean of the three corrections, of which two are 1.
  EXPECT_DOUBLE_EQ(slowdown_of(interference, {0, 1, 3}), 2.25 * (1.25 / 1.5 + 1 + 1) / 3);
  interference.learn(0, 1, 3);  // impossible: operation 0 alone takes 4 ms
  EXPECT_DOUBLE_EQ(interference.pair_ms(0, 1), 4);
}

// Operation 1 starts 1 ms after operation 0. From then on both share the device until 3 ms.
TEST(ConcurrencySimulator, OperationsShareTheDeviceWhileBothRun) {
  const StepLoad load = step({op(2, 1), op(2, 1)}, {});
  const InterferenceModel interference(load.ops);
  ConcurrencySimulator simulator(load, interference);
  simulator.start(0, 0);
  simulator.start(1, 1);
  EXPECT_DOUBLE_EQ(simulator.end_ms(), 4);
  EXPECT_EQ(simulator.advance(), std::vector{0});
  EXPECT_DOUBLE_EQ(simulator.now(), 3);  // 1 ms alone, then 1 ms of work at half the speed
  EXPECT_EQ(simulator.advance(), std::vector{1});
  EXPECT_DOUBLE_EQ(simulator.now(), 4);
  EXPECT_TRUE(simulator.idle());
}

}  // namespace
}  // namespace convoy::app
