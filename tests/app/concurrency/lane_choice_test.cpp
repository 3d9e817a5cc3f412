// Tests the choice of --lanes auto, with made-up times instead of a device. Lanes are sequences of
// instructions that run at the same time (lane_plan.h).
#include "app/concurrency/lane_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "app/compile/lanes.h"
#include "app/execute/lane_plan.h"

namespace convoy::app {
namespace {

constexpr std::chrono::milliseconds kBudget{500};
std::array<std::byte, 8192> memory;

MemoryRange range(int begin) { return {memory.data() + 64 * begin, 64}; }

Instruction instruction(std::vector<int> reads, int writes, const std::string& kind, double flops = 0) {
  Instruction made{"layer", kind, [](kernels::Stream) {}, flops, 64};
  for (const int begin : reads) made.reads.push_back(range(begin));
  made.writes.push_back(range(writes));
  return made;
}

// Returns a program of 19 instructions. The first is followed by six pairs of branches that join.
Program branches() {
  Program program;
  int at = 0;
  program.add(instruction({}, at, "first"));
  for (int i = 0; i < 6; ++i, at += 3) {
    program.add(instruction({at}, at + 1, "left", 1e6));
    program.add(instruction({at}, at + 2, "right", 2e6));
    program.add(instruction({at + 1, at + 2}, at + 3, "join"));
  }
  return program;
}

// Returns the resources of kernels with `blocks` blocks each, on a device that can run 100 blocks.
ResourceTable resources_of(const Program& program, int blocks) {
  ResourceTable table;
  table.device.multiprocessors = 100;
  table.kernels.assign(program.instructions().size(), {{.blocks = blocks, .threads = 128, .resident = 1}});
  return table;
}

// A device on which each operation takes 1 ms alone, and two at the same time take `together_ms`.
class MadeUpDevice final : public StepTimer {
 public:
  MadeUpDevice(const Program& program, double together_ms) : program_(program), together_ms_(together_ms) {}

  std::vector<double> op_ms() override { return std::vector(program_.instructions().size(), 1.0); }
  double event_ms(int) override { return 0.01; }
  std::vector<PairTime> pairs(std::span<const std::pair<int, int>> pairs) override {
    measured_pairs = static_cast<int>(pairs.size());
    return std::vector(pairs.size(), PairTime{2, together_ms_});
  }
  std::vector<double> schedules(std::span<const LaneOrder> schedules, Deadline) override {
    StepLoad load = make_step_load(program_, op_ms(), resources_of(program_, 100), {1e12, 1e12});
    InterferenceModel interference(load.ops);
    for (const int a : {0, 1, 2, 3})
      for (const int b : {0, 1, 2, 3}) interference.learn(a, b, together_ms_);
    const LaneOrder fixed = fixed_lanes(program_, dependences_of(program_), 3);
    std::vector<double> ms;
    for (const LaneOrder& lanes : schedules)
      ms.push_back(predict(load, interference, lanes, 0.01).ms * (lanes == fixed ? 1 : factor_of_others));
    measured_schedules = std::max(measured_schedules, static_cast<int>(schedules.size()));
    return ms;
  }
  int measured_pairs = 0, measured_schedules = 0;
  double factor_of_others = 1;  // multiplies the times of all schedules but that of the fixed lanes

 private:
  const Program& program_;
  const double together_ms_;
};

LaneChoice choose(const Program& program, int blocks, MadeUpDevice& device) {
  return choose_by_measurement(program, resources_of(program, blocks), {1e12, 1e12}, 8, device, kBudget);
}

TEST(LaneChoice, BranchesThatFitRunSideBySide) {
  const Program program = branches();
  MadeUpDevice device(program, 1);
  const LaneChoice choice = choose(program, 30, device);
  EXPECT_EQ(choice.forks, 6);
  EXPECT_GE(choice.lane_count, 2);
  EXPECT_NEAR(choice.measured_ms, 13, 0.2);
  EXPECT_DOUBLE_EQ(choice.measured_before_ms, 19);
  EXPECT_EQ(choice.source, LaneChoice::Source::measured);
  EXPECT_GT(device.measured_schedules, 2);
  EXPECT_NE(choice.text().find("6 forks"), std::string::npos) << choice.text();
}

TEST(LaneChoice, FixedLanesStayUnlessOthersAreClearlyFaster) {
  const Program program = branches();
  MadeUpDevice device(program, 1);
  device.factor_of_others = 0.985;
  EXPECT_EQ(choose(program, 30, device).schedule, "fixed, 3 lanes");
  device.factor_of_others = 0.97;
  EXPECT_NE(choose(program, 30, device).schedule, "fixed, 3 lanes");
}

// The predicted time of each of the 19 operations is 40 ms. A step this long cannot be measured
// within the time budget, so the default, fixed lanes, must stay.
TEST(LaneChoice, LongStepsKeepTheFixedLanes) {
  const Program program = branches();
  MadeUpDevice device(program, 1);
  const LaneChoice choice =
      choose_by_measurement(program, resources_of(program, 30), {1e12, 64 / 40.0}, 8, device, kBudget);
  EXPECT_EQ(choice.schedule, "fixed, 3 lanes");
  EXPECT_EQ(device.measured_schedules, 0);
  EXPECT_EQ(choice.source, LaneChoice::Source::model);
}

TEST(LaneChoice, OneLaneIfNothingIsGained) {
  const Program program = branches();
  MadeUpDevice device(program, 2.2);
  const LaneChoice choice = choose(program, 100, device);
  EXPECT_EQ(choice.lane_count, 1);
  EXPECT_EQ(choice.forks, 0);
  EXPECT_LE(choice.predicted_ms, choice.predicted_before_ms);
}

TEST(LaneChoice, AChainHasOneLane) {
  Program chain;
  for (int at = 0; at < 5; ++at)
    chain.add(instruction(at > 0 ? std::vector{at - 1} : std::vector<int>{}, at, "op"));
  for (const int blocks : {30, 100}) {
    MadeUpDevice device(chain, 1);
    EXPECT_EQ(choose(chain, blocks, device).lane_count, 1);
    EXPECT_EQ(choose_by_model(chain, resources_of(chain, blocks), {1e12, 1e12}, 8).lane_count, 1);
  }
}

// By the model each branch fills the device, so two at once gain nothing. But two branches are
// measured to take as long as one, and the measurement must count.
TEST(LaneChoice, MeasuredPairsCountMoreThanTheModel) {
  const Program program = branches();
  MadeUpDevice device(program, 1);
  const LaneChoice choice = choose(program, 100, device);
  EXPECT_GT(device.measured_pairs, 0);
  EXPECT_NEAR(choice.predicted_ms, 13, 0.2);
}

TEST(LaneChoice, TheModelAloneNeverPredictsItselfSlowerThanOneLane) {
  const Program program = branches();
  for (const int blocks : {10, 60, 100}) {
    const LaneChoice choice = choose_by_model(program, resources_of(program, blocks), {1e9, 1e12}, 8);
    EXPECT_LE(choice.predicted_ms, choice.predicted_before_ms) << blocks;
    EXPECT_EQ(choice.forks > 0, blocks < 100) << blocks;
    EXPECT_EQ(choice.source, LaneChoice::Source::model);
  }
}

TEST(LaneChoice, AsTextItComesBackUnchanged) {
  const Program program = branches();
  MadeUpDevice device(program, 1);
  LaneChoice choice = choose(program, 30, device);
  choice.lanes.holds = {{1, 3}};
  choice.lanes.urgent.assign(19, 0);
  choice.lanes.urgent[4] = 1;
  const LaneChoice back = read_choice(write_choice(choice), program);
  EXPECT_EQ(back.lanes, choice.lanes);
  EXPECT_EQ(back.text(), choice.text());
  EXPECT_DOUBLE_EQ(back.measured_ms, choice.measured_ms);
}

TEST(LaneChoice, AChoiceOfAnotherStepIsRefused) {
  const Program program = branches();
  MadeUpDevice device(program, 1);
  LaneChoice choice = choose(program, 30, device);
  Program longer = branches();
  longer.add(instruction({0}, 100, "last"));
  EXPECT_THROW(read_choice(write_choice(choice), longer), std::invalid_argument);
  EXPECT_THROW(read_choice("{}", program), std::invalid_argument);
  EXPECT_THROW(read_choice("no JSON", program), std::invalid_argument);
  std::ranges::reverse(choice.lanes.order);
  EXPECT_THROW(read_choice(write_choice(choice), program), std::invalid_argument);
  std::ranges::reverse(choice.lanes.order);
  EXPECT_NO_THROW(read_choice(write_choice(choice), program));
  choice.lanes.urgent = {1};
  EXPECT_THROW(read_choice(write_choice(choice), program), std::invalid_argument);
  choice.lanes.urgent = {};
  choice.lanes.holds = {{99, 0}};
  EXPECT_THROW(read_choice(write_choice(choice), program), std::invalid_argument);
}

TEST(LaneChoice, ItsKeyNamesTheStepAndTheDevice) {
  Program program = branches();
  const std::string key = choice_key("a GPU", program);
  EXPECT_EQ(key, choice_key("a GPU", branches()));
  EXPECT_NE(key, choice_key("another GPU", program));
  program.add(instruction({0}, 100, "last"));
  EXPECT_NE(key, choice_key("a GPU", program));
  const Program same = branches();
  Program moved;  // instructions of the same kinds, of which "right" ones read another range
  for (Instruction one : same.instructions()) {
    if (one.kind == "right") one.reads = {range(0)};
    moved.add(one);
  }
  EXPECT_NE(key, choice_key("a GPU", moved));
}

// Instructions that start communications must keep their order. An instruction that waits for other
// ranks must still come after all instructions that are before it in the program.
TEST(LaneChoice, CommunicationKeepsItsOrder) {
  Program program = branches();
  for (const int writes : {60, 61, 62}) {
    Instruction start = instruction({}, writes, "start");
    start.follow = [](kernels::Stream) {};
    program.add(start);
  }
  program.add(instruction({}, 64, "other"));
  Instruction wait = instruction({}, 63, "wait");
  wait.communicates = true;
  program.add(wait);
  const StepLoad load =
      make_step_load(program, std::vector(24, 1.0), resources_of(program, 10), {1e12, 1e12});
  EXPECT_EQ(load.waits[19], std::vector<int>());
  EXPECT_EQ(load.waits[20], std::vector{19});
  EXPECT_EQ(load.waits[21], std::vector{20});
  EXPECT_EQ(load.waits[22], std::vector<int>());
  EXPECT_EQ(load.waits[23], (std::vector{21, 22}));
  EXPECT_EQ(load.ops[20].ms, 0);
}

TEST(Lanes, TheFlagIsANumberOrAuto) {
  EXPECT_EQ(Lanes::parse("auto").count, kAutoLanes);
  EXPECT_EQ(Lanes::parse("8").count, 8);
  EXPECT_EQ(Lanes{3}.text(), "3");
  EXPECT_EQ(Lanes{}.text(), "auto");
  for (const char* wrong : {"", "0", "9", "03", "+3", "3.0", "3x", "automatic", "-1"})
    EXPECT_THROW(Lanes::parse(wrong), std::invalid_argument) << wrong;
}

}  // namespace
}  // namespace convoy::app
