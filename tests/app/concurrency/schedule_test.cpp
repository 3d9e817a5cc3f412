// Tests predicted times of schedules against times computed by hand, and list scheduling against
// the best of all possible schedules.
#include "app/concurrency/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <random>
#include <stdexcept>

#include "tests/app/concurrency/loads.h"

namespace convoy::app {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

bool runnable(const StepLoad& load, const LaneOrder& lanes) {
  std::vector<bool> done(load.ops.size(), false);
  for (const int i : lanes.order) {
    for (const int of : load.waits[at(i)])
      if (!done[at(of)]) return false;
    done[at(i)] = true;
  }
  return lanes.order.size() == load.ops.size() && std::ranges::count(done, false) == 0;
}

// Returns the shortest predicted time of the step: tries all orders and all choices of lanes.
double best_ms(const StepLoad& load, int lanes, double event_ms) {
  const InterferenceModel interference(load.ops);
  double best = std::numeric_limits<double>::infinity();
  LaneOrder tried;
  tried.lane.assign(load.ops.size(), 0);
  std::vector<bool> done(load.ops.size(), false);
  const std::function<void(int)> extend = [&](int used) {
    if (tried.order.size() == load.ops.size()) {
      best = std::min(best, predict(load, interference, tried, event_ms).ms);
      return;
    }
    for (int i = 0; i < std::ssize(load.ops); ++i) {
      if (done[at(i)] || std::ranges::any_of(load.waits[at(i)], [&](int of) { return !done[at(of)]; }))
        continue;
      done[at(i)] = true;
      tried.order.push_back(i);
      for (int lane = 0; lane < std::min(used + 1, lanes); ++lane) {
        tried.lane[at(i)] = lane;
        extend(std::max(used, lane + 1));
      }
      tried.order.pop_back();
      done[at(i)] = false;
    }
  };
  extend(0);
  return best;
}

// Returns a step that forks into two branches, of 3 and 2 ms, which join again.
StepLoad diamond(double blocks) {
  return step({op(1, 1), op(3, blocks), op(2, blocks), op(1, 1)}, {{0, 1}, {0, 2}, {1, 3}, {2, 3}});
}

TEST(Schedule, PredictionsOfADiamond) {
  const StepLoad load = diamond(0.5);
  const InterferenceModel interference(load.ops);
  EXPECT_DOUBLE_EQ(predict(load, interference, one_lane(load), 0.25).ms, 7);
  const LaneOrder two{{0, 1, 2, 3}, {0, 0, 1, 0}, {}};
  const PredictedSchedule forked = predict(load, interference, two, 0.25);
  // The short branch starts 0.25 ms late, but still ends before the long one.
  EXPECT_DOUBLE_EQ(forked.ms, 5);
  EXPECT_EQ(forked.forks, 1);
  EXPECT_DOUBLE_EQ(forked.begin[2], 1.25);
  EXPECT_DOUBLE_EQ(forked.end[2], 3.25);
  // Here the long branch has a lane of its own, and the last operation is in the lane of the short
  // branch. So the step is delayed by both waits for the other lane, which take 0.25 ms each:
  // before and after the long branch.
  const LaneOrder late{{0, 1, 2, 3}, {0, 1, 0, 0}, {}};
  EXPECT_DOUBLE_EQ(predict(load, interference, late, 0.25).ms, 1 + 0.25 + 3 + 0.25 + 1);
  // Here the last field ({1, 2}) makes operation 2 wait for operation 1, whose result it does not
  // need.
  const LaneOrder held{{0, 1, 2, 3}, {0, 0, 1, 0}, {{1, 2}}};
  EXPECT_DOUBLE_EQ(predict(load, interference, held, 0).ms, 7);
  const std::vector<Overlap> overlap = overlaps(load, forked);
  ASSERT_EQ(overlap.size(), 1u);
  EXPECT_DOUBLE_EQ(overlap[0].ms, 2);
}

TEST(Schedule, LanesThatWaitInACircleAreRefused) {
  const StepLoad load = step({op(1, 1), op(1, 1)}, {{0, 1}});
  EXPECT_THROW(predict(load, InterferenceModel(load.ops), {{1, 0}, {0, 0}, {}}, 0), std::invalid_argument);
}

TEST(Schedule, TheListForksADiamondThatFits) {
  const StepLoad load = diamond(0.5);
  const InterferenceModel interference(load.ops);
  const LaneOrder lanes = list_schedule(load, interference, {4, 0.25, 1, 0});
  EXPECT_EQ(lanes_of(load, lanes), 2);
  EXPECT_DOUBLE_EQ(predict(load, interference, lanes, 0.25).ms, 5);
  EXPECT_EQ(lanes.order, (std::vector{0, 1, 2, 3})) << "the longer branch is more urgent";
}

// One after the other, the branches take 3 + 2 ms. In a lane of its own the short branch ends 2 ms
// after the delay of an event. With a delay of 1.2 ms, both branches end after 3.2 ms, which saves
// 1.8 ms. With 1.6 ms they end after 3.6 ms, which saves 1.4 ms. The step must fork only if it
// saves more than the delay of one event.
TEST(Schedule, AForkMustGainMoreThanItCosts) {
  const StepLoad full = diamond(1);
  EXPECT_EQ(lanes_of(full, list_schedule(full, InterferenceModel(full.ops), {4, 0.01, 1, 0})), 1)
      << "branches that fill the device gain nothing";
  const StepLoad load = diamond(0.5);
  const InterferenceModel interference(load.ops);
  EXPECT_EQ(lanes_of(load, list_schedule(load, interference, {4, 1.2, 1, 0})), 2);
  EXPECT_EQ(lanes_of(load, list_schedule(load, interference, {4, 1.6, 1, 0})), 1);
  // Both branches together need 1.4 times the device, so they take 3.8 ms instead of 5 ms. If the
  // third option (caution) is 3, the slowdown of 40 % counts three times. The step must not fork.
  const StepLoad crowded = diamond(0.7);
  EXPECT_EQ(lanes_of(crowded, list_schedule(crowded, InterferenceModel(crowded.ops), {4, 0.1, 1, 0})), 2);
  EXPECT_EQ(lanes_of(crowded, list_schedule(crowded, InterferenceModel(crowded.ops), {4, 0.1, 3, 0})), 1);
}

// An operation is urgent if a path through it takes at least nine tenths of the longest path. The
// two paths of the diamond take 5 and 4 ms, so only the operations on the first path are urgent.
TEST(Schedule, UrgentIsWhatIsOnALongWay) {
  EXPECT_EQ(urgent_ops(diamond(0.5)), (std::vector<char>{1, 1, 0, 1}));
  const StepLoad alike = step({op(1, 1), op(3, 1), op(2.6, 1), op(1, 1)}, {{0, 1}, {0, 2}, {1, 3}, {2, 3}});
  EXPECT_EQ(urgent_ops(alike), (std::vector<char>{1, 1, 1, 1}));
}

StepLoad random_load(std::mt19937& engine, int ops) {
  const auto draw = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(engine);
  };
  std::vector<OpLoad> list;
  std::vector<std::pair<int, int>> edges;
  for (int i = 0; i < ops; ++i) {
    list.push_back(op(draw(0.5, 4), draw(0.1, 1), i));
    list.back().memory = draw(0, 0.8);
    for (int of = 0; of < i; ++of)
      if (draw(0, 1) < 0.3) edges.emplace_back(of, i);
  }
  return step(list, edges);
}

TEST(Schedule, TheListComesNearTheBestOfAllSchedules) {
  constexpr int kTrials = 12, kOps = 6, kLanes = 3;
  constexpr double kEventMs = 0.05;
  std::mt19937 engine(3);
  double worst = 1, sum = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const StepLoad load = random_load(engine, kOps);
    const InterferenceModel interference(load.ops);
    double list = std::numeric_limits<double>::infinity();
    for (const double caution : {0.0, 0.5, 1.0, 2.0})
      list =
          std::min(list, predict(load, interference,
                                 list_schedule(load, interference, {kLanes, kEventMs, caution, 0}), kEventMs)
                             .ms);
    const double best = best_ms(load, kLanes, kEventMs);
    EXPECT_LE(best, list + 1e-9);
    worst = std::max(worst, list / best), sum += list / best;
  }
  EXPECT_LT(worst, 1.15);
  EXPECT_LT(sum / kTrials, 1.05);
}

TEST(Schedule, TheListObeysDependencesAndLanes) {
  std::mt19937 engine(11);
  for (int trial = 0; trial < 40; ++trial) {
    StepLoad load = random_load(engine, 40);
    load.ops[5].ms = 0, load.ops[20].ms = 0;  // operations that start communications take no time
    load.ops[7].engine = Engine::copy_out, load.ops[30].engine = Engine::copy_back;
    const InterferenceModel interference(load.ops);
    for (const int lanes : {1, 2, 5})
      for (const std::uint32_t seed : {0u, 9u}) {
        const LaneOrder order = list_schedule(load, interference, {lanes, 0.01, 1, seed});
        ASSERT_TRUE(runnable(load, order));
        EXPECT_LE(lanes_of(load, order), lanes);
        EXPECT_NO_THROW(predict(load, interference, order, 0.01));
        EXPECT_EQ(order, list_schedule(load, interference, {lanes, 0.01, 1, seed}));
      }
  }
}

}  // namespace
}  // namespace convoy::app
