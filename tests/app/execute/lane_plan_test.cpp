// Tests lanes, which are sequences of instructions that run at the same time. They may change when
// instructions run, but never the data that instructions read.
#include "app/execute/lane_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

namespace convoy::app {
namespace {

std::array<std::byte, 4096> memory;

MemoryRange range(int begin, int bytes) { return {memory.data() + begin, bytes}; }

Instruction instruction(std::vector<MemoryRange> reads, std::vector<MemoryRange> writes) {
  Instruction made{"layer", "kind", [](kernels::Stream) {}};
  made.reads = std::move(reads);
  made.writes = std::move(writes);
  return made;
}

bool overlap(const MemoryRange& a, const MemoryRange& b) {
  const auto* x = static_cast<const std::byte*>(a.begin);
  const auto* y = static_cast<const std::byte*>(b.begin);
  return x < y + b.bytes && y < x + a.bytes;
}
bool conflict(const Instruction& a, const Instruction& b) {
  const auto touches = [](const Instruction& writer, const Instruction& other) {
    return std::ranges::any_of(writer.writes, [&](const MemoryRange& w) {
      return std::ranges::any_of(other.reads, [&](const auto& r) { return overlap(w, r); }) ||
             std::ranges::any_of(other.writes, [&](const auto& r) { return overlap(w, r); });
    });
  };
  return touches(a, b) || touches(b, a);
}

// Returns a matrix whose element [i][j] says whether lanes and events ensure that instruction j
// ends before instruction i starts.
std::vector<std::vector<bool>> order_of(const LanePlan& plan) {
  const std::size_t count = plan.steps.size();
  std::vector<std::vector<bool>> before(count, std::vector<bool>(count, false));
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const bool waits =
          plan.steps[j].records >= 0 &&
          std::ranges::find(plan.steps[i].waits, plan.steps[j].records) != plan.steps[i].waits.end();
      if (!waits && plan.steps[i].lane != plan.steps[j].lane) continue;
      before[i][j] = true;
      for (std::size_t k = 0; k < j; ++k) before[i][k] = before[i][k] || before[j][k];
    }
  return before;
}

TEST(Lanes, InstructionsThatTouchTheSameMemoryAreOrdered) {
  std::mt19937 engine(7);
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine); };
  for (int trial = 0; trial < 60; ++trial) {
    Program program;
    for (int i = 0; i < 60; ++i) {
      std::vector<MemoryRange> reads, writes;
      for (int k = pick(0, 3); k > 0; --k) reads.push_back(range(pick(0, 900), pick(1, 60)));
      for (int k = pick(0, 2); k > 0; --k) writes.push_back(range(pick(0, 900), pick(1, 60)));
      program.add(instruction(reads, writes));
    }
    const LanePlan plan = plan_lanes(program, pick(2, 4));
    const auto before = order_of(plan);
    for (std::size_t i = 0; i < 60; ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (conflict(program.instructions()[i], program.instructions()[j])) {
          ASSERT_TRUE(before[i][j]) << "trial " << trial << ": " << j << " and " << i << " may run at once";
        }
  }
}

// The program copies a buffer to the host, copies other data back, and has operations that need
// neither copy. Each direction of copies must have a lane of its own.
TEST(Lanes, CopiesHaveLanesOfTheirOwnInEachDirection) {
  for (const int lanes : {1, 3}) {
    Program program;
    const auto add = [&](std::vector<MemoryRange> reads, std::vector<MemoryRange> writes, Engine engine) {
      Instruction made = instruction(std::move(reads), std::move(writes));
      made.engine = engine;
      program.add(std::move(made));
    };
    add({}, {range(0, 64)}, Engine::compute);
    add({range(0, 64)}, {range(1000, 64)}, Engine::copy_out);
    add({range(0, 64)}, {range(64, 64)}, Engine::compute);
    // This instruction overwrites the buffer that the copy reads, so it must wait for the copy to
    // end.
    add({range(64, 64)}, {range(0, 64)}, Engine::compute);
    add({range(1000, 64)}, {range(128, 64)}, Engine::copy_back);
    add({range(128, 64)}, {range(192, 64)}, Engine::compute);
    const LanePlan plan = plan_lanes(program, lanes);
    EXPECT_EQ(plan.lanes, lanes + kCopyLanes);
    EXPECT_EQ(plan.steps[1].lane, lanes);
    EXPECT_EQ(plan.steps[4].lane, lanes + 1);
    for (const int compute : {0, 2, 3, 5})
      EXPECT_LT(plan.steps[static_cast<std::size_t>(compute)].lane, lanes);
    const auto before = order_of(plan);
    EXPECT_TRUE(before[1][0]);
    EXPECT_TRUE(before[3][1]) << "the buffer is written while it is copied";
    EXPECT_FALSE(before[2][1]) << "a reader waits for the copy";
    EXPECT_TRUE(before[4][1]);
    EXPECT_FALSE(before[4][3]) << "the copy back waits for what does not touch its buffer";
    EXPECT_TRUE(before[5][4]);
  }
  EXPECT_EQ(plan_lanes(Program(), 3).lanes, 3);
}

TEST(Lanes, IndependentBranchesRunSideBySide) {
  Program program;
  program.add(instruction({}, {range(0, 64)}));
  program.add(instruction({range(0, 64)}, {range(64, 64)}));
  program.add(instruction({range(0, 64)}, {range(128, 64)}));
  program.add(instruction({range(64, 64)}, {range(192, 64)}));
  program.add(instruction({range(128, 64)}, {range(256, 64)}));
  program.add(instruction({range(192, 128)}, {range(320, 64)}));
  const LanePlan plan = plan_lanes(program, 2);
  const auto before = order_of(plan);
  EXPECT_FALSE(before[2][1]);
  EXPECT_FALSE(before[4][3]);
  EXPECT_TRUE(before[5][3] && before[5][4] && before[5][0]);
  EXPECT_LE(plan.events, 3) << "an event orders nothing new";
}

TEST(Lanes, OneLaneNeedsNoEvents) {
  Program program;
  for (int i = 0; i < 4; ++i) program.add(instruction({range(0, 8)}, {range(0, 8)}));
  EXPECT_EQ(plan_lanes(program, 1).events, 0);
}

}  // namespace
}  // namespace convoy::app
