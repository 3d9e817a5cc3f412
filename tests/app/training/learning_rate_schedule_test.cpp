// Compares every schedule with its closed form and with rates of PyTorch 1.13. A curve that is
// wrong by one step would change training without any error message.
#include "app/training/learning_rate_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace convoy::app {
namespace {

using Rates = std::vector<std::pair<std::int64_t, double>>;

void expect_rates(const LearningRateSchedule& schedule, const Rates& rates) {
  for (const auto& [step, rate] : rates) {
    EXPECT_NEAR(schedule.learning_rate_at(step), rate, 1e-12 * std::max(1e-3, rate)) << "step " << step;
  }
}

TEST(LearningRateSchedule, CosineEqualsPyTorch) {
  const LearningRateSchedule schedule{
      .kind = ScheduleKind::cosine, .total_steps = 10, .final_learning_rate = 0.001};
  expect_rates(schedule, {{0, 0.1}, {1, 0.09757729755661011}, {5, 0.0505}, {9, 0.0034227024433899004}});
}

TEST(LearningRateSchedule, StepEqualsPyTorchMultiStep) {
  const LearningRateSchedule schedule{.kind = ScheduleKind::step, .total_steps = 10, .milestones = {3, 7}};
  expect_rates(schedule, {{0, 0.1}, {2, 0.1}, {3, 0.01}, {6, 0.01}, {7, 0.001}, {9, 0.001}});
}

TEST(LearningRateSchedule, PolynomialEqualsPyTorch) {
  const LearningRateSchedule schedule{.kind = ScheduleKind::polynomial, .total_steps = 10, .power = 2};
  expect_rates(schedule, {{0, 0.1}, {1, 0.081}, {5, 0.025}, {9, 0.001}});
}

TEST(LearningRateSchedule, OneCycleEqualsPyTorch) {
  LearningRateSchedule schedule{.kind = ScheduleKind::one_cycle, .learning_rate = 0.4, .total_steps = 20};
  expect_rates(schedule, {{0, 0.016},
                          {1, 0.05266873708001013},
                          {4, 0.3633312629199899},
                          {5, 0.4},
                          {6, 0.39498560249403497},
                          {10, 0.28677720071652035},
                          {18, 0.005015997505965022},
                          {19, 1.6e-06}});
  schedule.rise = 0.25;
  schedule.initial_division = 10;
  schedule.final_division = 100;
  schedule.anneal = Anneal::linear;
  expect_rates(
      schedule,
      {{0, 0.04}, {1, 0.13}, {3, 0.31}, {4, 0.4}, {5, 0.37336}, {10, 0.24016}, {18, 0.02704}, {19, 0.0004}});
}

TEST(LearningRateSchedule, OneCyclePeakMayFallBetweenSteps) {
  const LearningRateSchedule schedule{.kind = ScheduleKind::one_cycle, .learning_rate = 1, .total_steps = 97};
  expect_rates(schedule, {{0, 0.04},
                          {13, 0.46378190007394016},
                          {28, 0.9999700018948132},
                          {29, 0.9995665682400687},
                          {50, 0.7645462747065727},
                          {96, 4e-06}});
}

TEST(LearningRateSchedule, OneCycleOfFewStepsStaysFiniteAndBelowThePeak) {
  for (std::int64_t steps = 1; steps <= 12; ++steps) {
    for (const double rise : {0.05, 0.3, 0.5, 0.99}) {
      const LearningRateSchedule schedule{
          .kind = ScheduleKind::one_cycle, .learning_rate = 2, .total_steps = steps, .rise = rise};
      for (std::int64_t step = 0; step < steps; ++step) {
        const double rate = schedule.learning_rate_at(step);
        EXPECT_TRUE(rate > 0 && rate <= 2)
            << steps << " steps, rise " << rise << ", step " << step << ": " << rate;
      }
    }
  }
}

TEST(LearningRateSchedule, WarmUpRisesLinearlyToWhatTheScheduleBeginsWith) {
  for (const auto& [name, kind] : kChoices<ScheduleKind>) {
    // one_cycle begins at a 25th of its peak, so warm-up must rise to that: 20 / 25 = 0.8.
    const bool cycle = kind == ScheduleKind::one_cycle;
    LearningRateSchedule schedule{
        .kind = kind, .learning_rate = cycle ? 20. : 0.8, .total_steps = 100, .warmup_steps = 5};
    schedule.milestones = {50};
    expect_rates(schedule, {{0, 0.16}, {1, 0.32}, {2, 0.48}, {3, 0.64}, {4, 0.8}, {5, 0.8}});
  }
}

TEST(LearningRateSchedule, AfterWarmUpTheRestSpansTheWholeCurve) {
  // After 4 warm-up steps a run must have the same curve as a run of 10 steps without warm-up.
  for (const ScheduleKind kind : {ScheduleKind::cosine, ScheduleKind::polynomial, ScheduleKind::one_cycle}) {
    const LearningRateSchedule whole{.kind = kind, .total_steps = 10};
    LearningRateSchedule warmed = whole;
    warmed.total_steps = 14;
    warmed.warmup_steps = 4;
    for (std::int64_t step = 0; step < 10; ++step) {
      EXPECT_DOUBLE_EQ(warmed.learning_rate_at(step + 4), whole.learning_rate_at(step))
          << name_of(kind) << step;
    }
  }
}

TEST(LearningRateSchedule, MilestonesCountFromTheStartOfTheRun) {
  const LearningRateSchedule schedule{
      .kind = ScheduleKind::step, .total_steps = 20, .warmup_steps = 5, .milestones = {10}, .gamma = 0.5};
  expect_rates(schedule, {{9, 0.1}, {10, 0.05}});
}

TEST(LearningRateSchedule, StepsAfterTheLastKeepItsRate) {
  for (const auto& [name, kind] : kChoices<ScheduleKind>) {
    const LearningRateSchedule schedule{.kind = kind, .total_steps = 10};
    EXPECT_EQ(schedule.learning_rate_at(1000), schedule.learning_rate_at(9)) << name;
  }
}

TEST(LearningRateSchedule, AllStepsMayBeWarmUp) {
  const LearningRateSchedule schedule{
      .kind = ScheduleKind::cosine, .learning_rate = 1, .total_steps = 4, .warmup_steps = 4};
  expect_rates(schedule, {{0, 0.25}, {3, 1}, {7, 1}});
}

TEST(LearningRateSchedule, RateScalesWithTheGlobalBatch) {
  EXPECT_DOUBLE_EQ(scaled_learning_rate(0.1, RateScaling::none, 1024, 256), 0.1);
  EXPECT_DOUBLE_EQ(scaled_learning_rate(0.1, RateScaling::linear, 1024, 256), 0.4);
  EXPECT_DOUBLE_EQ(scaled_learning_rate(0.1, RateScaling::square_root, 1024, 256), 0.2);
  EXPECT_DOUBLE_EQ(scaled_learning_rate(0.1, RateScaling::linear, 64, 256), 0.025);
  EXPECT_THROW(scaled_learning_rate(0.1, RateScaling::linear, 64, 0), std::invalid_argument);
}

}  // namespace
}  // namespace convoy::app
