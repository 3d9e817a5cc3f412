// Tests that the members of a session (trainings that run together) get the same bits as alone.
#include "tests/app/execute/members_support.h"

namespace convoy::app {
namespace {

using kernels::OptimizerKind;

// Every member must get the bits of a training alone, although the members have different values of
// every hyperparameter. The runs have batch norm, dropout, augmentation, clipping and averages.
TEST(Members, HaveTheBitsOfATrainingAlone) {
  for (const Network& network : {every_op(), residual()})
    for (const int count : {1, 7}) expect_members_as_alone(network, {}, count, 5);
}

TEST(Members, HaveTheirBitsWithEveryOptimizer) {
  for (const OptimizerKind kind : {OptimizerKind::lars, OptimizerKind::adamw}) {
    StepOptions options;
    options.optimizer.kind = kind;
    expect_members_as_alone(residual(), options, 3, 4);
  }
}

TEST(Members, MayHaveTheirParametersUpdatedInBackward) {
  StepOptions options;
  options.early_update_bytes = 0;
  expect_members_as_alone(residual(), options, 3, 4);
  options.optimizer.kind = kernels::OptimizerKind::adamw;
  expect_members_as_alone(residual(), options, 3, 4);
}

TEST(Members, MayBeMany) { expect_members_as_alone(residual(), {}, 64, 3, 21); }

TEST(Members, AreEvaluatedAsAlone) {
  MembersRun all(residual(), {}, 0, 3);
  all.train(3);
  const double found = all.loss(2);
  MembersRun alone(residual(), {}, 2, 1);
  alone.train(3);
  EXPECT_EQ(found, alone.loss(0));
}

// One member stops during the run and is no longer computed. The others must keep their bits.
TEST(Members, GoOnWhenOneRetires) {
  MembersRun all(residual(), {}, 0, 3), rest(residual(), {}, 0, 3);
  all.train(2), rest.train(2);
  const CheckpointState retired = rest.state(1);
  rest.session().retire(1);
  all.train(2), rest.train(2);
  for (const int member : {0, 2}) expect_same_member(rest.state(member), all.state(member), member);
  expect_same_member(rest.state(1), retired, 1);
}

TEST(Members, ShareOneStrideAndEachHasItsControl) {
  MembersRun run(residual(), {}, 0, 3);
  const ModelMemory& memory = run.session().memory();
  EXPECT_EQ(memory.stride() % 256, 0);
  EXPECT_EQ(memory.plan().total(), 3 * memory.stride()) << "a host's members share nothing";
  EXPECT_EQ(&run.session().input().control(2), memory.of_member(memory.control(), 2));
}

// The memory limit is so low that operations must run again. All members together must keep to it
// and get the same bits as without a limit.
TEST(Members, FitIntoAMemoryLimitTogether) {
  StepOptions limited;
  MembersRun roomy(residual(), limited, 0, 4);
  const MemoryPlan& plan = roomy.session().memory().plan();
  limited.memory_limit = plan.total() - plan.bytes(Region::activations);
  MembersRun tight(residual(), limited, 0, 4);
  EXPECT_LE(tight.session().memory().plan().total(), limited.memory_limit);
  EXPECT_TRUE(tight.session().steps().fit.fitted);
  roomy.train(3), tight.train(3);
  for (int member = 0; member < 4; ++member)
    expect_same_member(tight.state(member), roomy.state(member), member);
}

}  // namespace
}  // namespace convoy::app
