// Tests sessions of different shapes that take their steps together. Every member (one training in
// a session) must get the bits of a training alone, and the sessions must share the batches of one
// loader.
#include "tests/app/execute/joined_support.h"

namespace convoy::app {
namespace {

StepOptions with_averages() {
  StepOptions options;
  options.optimizer.averages = true;
  return options;
}

TEST(JoinedSessions, GiveEveryMemberTheBitsOfItsSessionAlone) {
  JoinedRun both({residual(), rectifying()}, with_averages());
  JoinedRun first({residual()}, with_averages()), second({rectifying()}, with_averages());
  for (JoinedRun* run : {&both, &first, &second}) run->train(3);
  for (const int member : {0, 1}) {
    expect_same_member(both.state(member), first.state(member), member);
    expect_same_member(both.state(2 + member), second.state(member), member);
  }
  EXPECT_EQ(both.evaluate(false)[3].loss(), second.evaluate(false)[1].loss());
}

TEST(JoinedSessions, TakeEachBatchOnce) {
  JoinedRun run({residual(), rectifying()}, with_averages());
  run.train(3);
  EXPECT_EQ(run.source().given(), 3) << "four members of two shapes train on one batch";
  EXPECT_EQ(run.source().lent(), 0);
  EXPECT_EQ(run.joined().members(), 4);
  EXPECT_NE(&run.joined().session_of(1), &run.joined().session_of(2));
}

TEST(JoinedSessions, AShapeWithoutMembersThatTrainStops) {
  JoinedRun all({residual(), rectifying()}, with_averages()),
      rest({residual(), rectifying()}, with_averages());
  all.train(2), rest.train(2);
  const CheckpointState retired = rest.state(3);
  rest.joined().retire(2), rest.joined().retire(3);
  all.train(2), rest.train(2);
  for (const int member : {0, 1}) expect_same_member(rest.state(member), all.state(member), member);
  expect_same_member(rest.state(3), retired, 3);
  EXPECT_EQ(rest.source().lent(), 0);
  EXPECT_EQ(rest.evaluate(false)[2].samples, 0);
}

TEST(JoinedSessions, EvaluateTheAverages) {
  JoinedRun run({residual(), rectifying()}, with_averages());
  run.train(3);
  const CheckpointState before = run.state(0);
  const int batches = run.source().given();
  const std::vector<StepMetrics> values = run.evaluate(false), averages = run.evaluate(true);
  EXPECT_EQ(run.source().given(), batches + 2 * run.source().steps_per_epoch());
  for (std::size_t member = 0; member < 4; ++member) {
    EXPECT_EQ(averages[member].samples, 30);
    EXPECT_NE(averages[member].loss(), values[member].loss());
  }
  expect_same_member(run.state(0), before, 0);
  JoinedRun none({residual(), rectifying()}, {});
  none.train(1);
  EXPECT_EQ(none.evaluate(true)[0].samples, 0) << "there are no averages";
  EXPECT_EQ(none.evaluate(false)[0].samples, 30);
}

TEST(JoinedSessions, WorkIsSpreadEvenly) {
  EXPECT_EQ(spread(std::vector<double>{1, 4, 16, 64}, 2), (std::vector{1, 1, 1, 0}));
  EXPECT_EQ(spread(std::vector<double>{5, 5, 4, 3, 3}, 2), (std::vector{0, 1, 0, 1, 1}));
  EXPECT_EQ(spread(std::vector<double>{2, 3}, 1), (std::vector{0, 0}));
  EXPECT_TRUE(spread({}, 3).empty());
}

}  // namespace
}  // namespace convoy::app
