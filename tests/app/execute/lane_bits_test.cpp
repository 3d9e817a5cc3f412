// Tests that a step gives the same bits in every allowed order of its instructions. Lanes
// (sequences of instructions that run at the same time, lane_plan.h) leave the order open.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "app/execute/lane_plan.h"
#include "app/execute/session_tools.h"
#include "app/training/checkpoint/session_state.h"
#include "comm/single_rank.h"
#include "tests/app/execute/train_step.h"
#include "tests/app/execute/whole_session.h"
#include "tests/app/model/tiny_networks.h"

namespace convoy::app {
namespace {

LaneOrder random_order(const Program& program, std::uint32_t seed) {
  std::mt19937 engine(seed);
  const auto waits = dependences_of(program);
  LaneOrder lanes;
  std::vector<bool> done(waits.size(), false);
  std::vector<int> ready;
  while (lanes.order.size() < waits.size()) {
    ready.clear();
    for (int i = 0; i < std::ssize(waits); ++i) {
      const auto& own = waits[static_cast<std::size_t>(i)];
      const auto open = [&](int of) { return !done[static_cast<std::size_t>(of)]; };
      if (open(i) && std::ranges::none_of(own, open)) ready.push_back(i);
    }
    const int next = ready[std::uniform_int_distribution<std::size_t>(0, ready.size() - 1)(engine)];
    done[static_cast<std::size_t>(next)] = true;
    lanes.order.push_back(next);
  }
  for (std::size_t i = 0; i < waits.size(); ++i)
    lanes.lane.push_back(std::uniform_int_distribution(0, 4)(engine));
  return lanes;
}

CheckpointState trained(const Network& network, std::uint32_t seed, bool reordered) {
  StepOptions options;
  options.optimizer.averages = true;
  options.members[0].hyperparameters.average_decay = 0.9;
  options.clip = true;
  comm::SingleRank rank;
  Session session = whole_session(network, options, rank);
  if (reordered) {
    Program& program = SessionTools(session).programs().train;
    const LaneOrder lanes = random_order(program, seed);
    EXPECT_FALSE(std::ranges::is_sorted(lanes.order));
    program.arrange(lanes);
  }
  const Shape& shape = network.shape(0);
  std::vector<float> images(static_cast<std::size_t>(shape.elements()));
  initialize({"images", shape, Initializer::normal(1)}, 17, images.data());
  StepInput& input = session.input();
  for (std::size_t i = 0; i < input.labels().size(); ++i)
    input.labels()[i] = static_cast<std::int32_t>(i * 7 % 5);
  input.control().valid = input.control().global_valid = static_cast<std::int32_t>(shape[0]);
  input.control().learning_rate = 0.02f;
  for (int step = 0; step < 3; ++step) {
    session.tensors().write(input.images(), images);
    input.control().step = static_cast<std::uint64_t>(step);
    test::train_step(session);
  }
  CheckpointState state;
  SessionState(session).capture(state);
  return state;
}

TEST(LaneBits, AnyOrderOfAStepHasTheSameBits) {
  for (Network (*const make)() : {every_op, residual, grouped}) {
    const Network network = make();
    const CheckpointState expected = trained(network, 0, false);
    for (const std::uint32_t seed : {1u, 2u, 3u}) {
      const CheckpointState state = trained(network, seed, true);
      for (const auto member : {&CheckpointState::parameters, &CheckpointState::statistics,
                                &CheckpointState::optimizer, &CheckpointState::averages}) {
        ASSERT_EQ((state.*member).size(), (expected.*member).size());
        for (std::size_t i = 0; i < (state.*member).size(); ++i)
          EXPECT_EQ((state.*member)[i].values, (expected.*member)[i].values) << (state.*member)[i].name;
      }
    }
  }
}

// Measuring a program's time runs it, which changes parameters and statistics. reset() must restore
// their initial values.
TEST(LaneBits, ResetBringsTheFirstValuesBack) {
  const Network network = every_op();
  StepOptions options;
  comm::SingleRank rank;
  Session session = whole_session(network, options, rank), untouched = whole_session(network, options, rank);
  SessionTools(session).prepare_timing();
  SessionTools(session).programs().train.run();
  CheckpointState spoilt, state, expected;
  SessionState(session).capture(spoilt);
  SessionState(untouched).capture(expected);
  const auto values = [](const CheckpointState& of) {
    std::vector<std::vector<float>> all;
    for (const auto member :
         {&CheckpointState::parameters, &CheckpointState::statistics, &CheckpointState::optimizer})
      for (const auto& tensor : of.*member) all.push_back(tensor.values);
    return all;
  };
  EXPECT_NE(values(spoilt), values(expected)) << "running statistics change";
  session.tensors().reset();
  SessionState(session).capture(state);
  EXPECT_EQ(values(state), values(expected));
}

}  // namespace
}  // namespace convoy::app
