// Tests plans that copy some tensors to host memory after forward, and back before backward.
#include "partition/memory/step_planner.h"

#include <gtest/gtest.h>

#include <ctime>
#include <limits>
#include <stdexcept>

#include "tests/partition/memory/step_nets.h"

namespace convoy::partition {
namespace {

using Kind = StepRun::Kind;

StepModel copyable(StepModel model) {
  model.copyable.assign(model.tensor_bytes.size(), 0);
  for (const StepOperation& operation : model.operations)
    for (const int tensor : operation.outputs) model.copyable[tensor] = operation.backward ? 0 : 1;
  return model;
}

std::int64_t most_of(const StepModel& model) { return live_peak(model, single_runs(model)); }

// Returns a link to host memory that can copy `share` of the step's memory while forward runs.
HostLink link_of(const StepModel& model, double share, std::int64_t host_bytes = std::int64_t{1} << 40) {
  double forward = 0;
  for (const StepOperation& operation : model.operations) forward += operation.backward ? 0 : operation.ms;
  const double rate = share * static_cast<double>(most_of(model)) / forward;
  return {rate, rate, host_bytes};
}

// Returns a step of four forward operations of 1 ms with outputs of 8 bytes, and backward
// operations of 2 ms. Copying 4 bytes takes 1 ms.
StepModel chain() {
  Net net;
  int x = net.op(1, 8, {});
  for (int i = 0; i < 3; ++i) x = net.op(1, 8, {x});
  StepModel model = copyable(net.step());
  for (StepOperation& operation : model.operations)
    if (operation.backward) operation.ms = 2;
  return model;
}
const HostLink kLink{4, 4, 1 << 20};

std::vector<Kind> kinds(const StepSchedule& schedule) {
  std::vector<Kind> found;
  for (const StepRun& run : schedule) found.push_back(run.kind);
  return found;
}

TEST(HostCopies, OnDemandATensorIsGoneBetweenItsReaders) {
  const StepModel model = chain();
  const StepSchedule once = single_runs(model);
  const StepSchedule schedule = HostCopies(model, once, {0}, kLink).on_demand();
  ASSERT_EQ(schedule.size(), once.size() + 3);
  // Run 0 writes tensor 0; run 1 and the last run read it. In between, only the host has it.
  EXPECT_EQ(schedule[1].kind, Kind::copy_out);
  EXPECT_EQ(schedule[3].kind, Kind::copied_out);
  EXPECT_EQ(schedule[schedule.size() - 2].kind, Kind::copy_back);
  EXPECT_EQ(host_bytes(model, schedule), 8);
  const std::vector<std::int64_t> kept = live_bytes(model, once), live = live_bytes(model, schedule);
  for (std::size_t at = 4; at < schedule.size() - 2; ++at) EXPECT_EQ(live[at], kept[at - 2] - 8) << at;
  EXPECT_EQ(live.back(), kept.back());
  // Run 2 waits 1 ms for the end of the copy to the host, and the last run 2 ms for the copy back.
  EXPECT_NEAR(expected_ms(model, schedule, kLink), all_ms(model) + 3, 0.1);
}

TEST(HostCopies, WithMemoryCopiesAreHidden) {
  const StepModel model = chain();
  const StepSchedule once = single_runs(model);
  const HostCopies copies(model, once, {0}, kLink);
  const std::int64_t most = most_of(model);
  const StepSchedule hidden = copies.hidden(most);
  EXPECT_NEAR(expected_ms(model, hidden, kLink), all_ms(model), 1e-9);
  EXPECT_LE(live_peak(model, hidden), most);
  // Two copies of 8 bytes cost the operations beside them half a millisecond each.
  HostLink slowing = kLink;
  slowing.slowing_bytes_ms = 16;
  EXPECT_NEAR(expected_ms(model, hidden, slowing), all_ms(model) + 1, 1e-9);
  // With this limit there is no room for the tensor while it is copied, so operations must wait.
  const std::int64_t tight = live_peak(model, copies.on_demand());
  EXPECT_LT(tight, most);
  EXPECT_LE(live_peak(model, copies.hidden(tight)), tight);
  EXPECT_GE(expected_ms(model, copies.hidden(tight), kLink), all_ms(model));
  HostLink blocking = kLink;
  blocking.overlaps = false;
  EXPECT_NEAR(expected_ms(model, HostCopies(model, once, {0}, blocking).hidden(most), blocking),
              all_ms(model) + 4, 0.1);
}

TEST(HostCopies, ACopyBackMayBeginAheadOfAnOperation) {
  const StepModel model = chain();
  const StepSchedule once = single_runs(model);
  std::vector<char> every(model.operations.size(), 1);
  const StepSchedule ahead = HostCopies(model, once, {0}, kLink).ahead_of(every, 1);
  EXPECT_EQ(kinds(ahead)[ahead.size() - 3], Kind::copy_back);
  EXPECT_NEAR(expected_ms(model, ahead, kLink), all_ms(model) + 1, 0.1);
}

TEST(HostCopies, ATensorThatIsNotInMemoryCannotBeRead) {
  const StepModel model = chain();
  StepSchedule schedule = HostCopies(model, single_runs(model), {0}, kLink).on_demand();
  std::erase_if(schedule, [](const StepRun& run) { return run.kind == Kind::copy_back; });
  EXPECT_THROW(live_bytes(model, schedule), std::logic_error);
}

void expect_valid(const StepModel& model, const StepPlan& plan, const HostLink& link, std::int64_t limit) {
  EXPECT_LE(plan.live_bytes, limit);
  EXPECT_EQ(plan.live_bytes, live_peak(model, plan.schedule));
  EXPECT_EQ(plan.host_bytes, host_bytes(model, plan.schedule));
  EXPECT_LE(plan.host_bytes, link.host_bytes);
  EXPECT_NEAR(plan.more_ms, expected_ms(model, plan.schedule, link) - all_ms(model), 1e-6);
  EXPECT_NEAR(plan.repeated_ms, repeated_ms(model, plan.schedule), 1e-6);
}

constexpr double kShares[] = {0.75, 0.5, 0.33, 0.25};

TEST(StepPlanner, CopiesTakeLessTimeThanRunsThatTheyReplace) {
  for (const StepModel& model : {copyable(residual_step(16)), copyable(dense_step(2, 8))}) {
    const HostLink none{}, slow = link_of(model, 0.1), fast = link_of(model, 0.5);
    const StepPlanner without(model, none), some(model, slow), more(model, fast);
    double before = 0;
    for (const double share : kShares) {
      const auto limit = static_cast<std::int64_t>(share * static_cast<double>(most_of(model)));
      const auto kept = without.plan(limit), copied = some.plan(limit), fastest = more.plan(limit);
      ASSERT_TRUE(copied && fastest) << share;
      expect_valid(model, *copied, slow, limit);
      expect_valid(model, *fastest, fast, limit);
      if (kept) {
        EXPECT_LE(copied->more_ms, kept->more_ms) << share;
      }
      EXPECT_LE(fastest->more_ms, copied->more_ms + 1e-6) << share;
      EXPECT_GE(copied->more_ms, before) << "less memory for less time at " << share;
      before = copied->more_ms;
    }
    const auto half = static_cast<std::int64_t>(0.5 * static_cast<double>(most_of(model)));
    EXPECT_LE(more.plan(half)->more_ms, 0.4 * without.plan(half)->more_ms);
    EXPECT_LE(some.plan(half)->more_ms, 0.9 * without.plan(half)->more_ms);
  }
}

TEST(StepPlanner, MoreHostMemoryTakesNoMoreTime) {
  const StepModel model = copyable(residual_step(16));
  const std::int64_t most = most_of(model);
  double before = std::numeric_limits<double>::infinity();
  for (const std::int64_t bytes : {std::int64_t{0}, most / 50, most / 20, most / 10, most / 4, most}) {
    const HostLink link = link_of(model, 0.4, bytes);
    const auto plan = StepPlanner(model, link).plan(most / 2);
    ASSERT_TRUE(plan);
    expect_valid(model, *plan, link, most / 2);
    EXPECT_LE(plan->more_ms, before) << bytes;
    before = plan->more_ms;
  }
  EXPECT_LT(before, 0.5 * StepPlanner(model, {}).plan(most / 2)->more_ms);
}

TEST(StepPlanner, CopiesThatSlowOperationsDownAreWeighedAgainstRuns) {
  const StepModel model = copyable(residual_step(16));
  const std::int64_t half = most_of(model) / 2;
  const StepPlan kept = *StepPlanner(model, {}).plan(half);
  for (const double costs : {0.1, 0.5, 1.0, 2.0, 100.0}) {
    HostLink link = link_of(model, 0.5);
    link.slowing_bytes_ms = link.out_bytes_ms / costs;
    const auto plan = StepPlanner(model, link).plan(half);
    ASSERT_TRUE(plan);
    expect_valid(model, *plan, link, half);
    EXPECT_LE(plan->more_ms, kept.more_ms) << costs;
    if (costs == 0.1) EXPECT_FALSE(plan->away.empty());
    if (costs == 100.0) EXPECT_TRUE(plan->away.empty());
  }
}

TEST(StepPlanner, ReachesLessThanRunsAgainDo) {
  StepModel model = copyable(residual_step(16));
  for (StepOperation& operation : model.operations) operation.again.clear();
  const HostLink link = link_of(model, 0.5);
  const StepPlanner planner(model, link);
  const StepPlan least = planner.least();
  EXPECT_LT(least.live_bytes, most_of(model) / 3);
  expect_valid(model, least, link, least.live_bytes);
  const auto plan = planner.plan(most_of(model) / 2);
  ASSERT_TRUE(plan);
  expect_valid(model, *plan, link, most_of(model) / 2);
  EXPECT_EQ(plan->repeated_ms, 0);
  EXPECT_FALSE(StepPlanner(model, {}).plan(most_of(model) / 2));
}

TEST(StepPlanner, TwoThousandOperationsArePlannedInTwoSeconds) {
  const StepModel model = copyable(residual_step(134));
  const auto start = std::clock();
  const StepPlanner planner(model, link_of(model, 0.2));
  EXPECT_TRUE(planner.plan(static_cast<std::int64_t>(0.3 * static_cast<double>(most_of(model)))));
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 2);
}

}  // namespace
}  // namespace convoy::partition
