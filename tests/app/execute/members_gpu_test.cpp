// Tests that the members of a session (trainings that run together) on a GPU get the bits of a
// training alone. Some kernels compute all members in one launch, others need a launch for each
// member.
#include <fmt/format.h>

#include "app/compile/step_choices.h"
#include "kernels/gemm/bench/measure.h"
#include "tests/app/execute/joined_support.h"
#include "tests/brief.h"

namespace convoy::app {
namespace {

class CudaMembers : public testing::Test {
 protected:
  void SetUp() override {
    if (!kernels::gemm::device_present()) GTEST_SKIP() << "no GPU: members on CUDA were not tested";
    kernels::use_gpu(0);
  }
  static StepOptions options(Precision precision) {
    StepOptions made;
    made.backend = kernels::Backend::cuda;
    made.precision = precision;
    made.norm_inputs.least_elements = 1;
    return made;
  }
};

TEST_F(CudaMembers, HaveTheBitsOfATrainingAlone) {
  for (const Network& network : {every_op(), residual(), rectifying(), grouped(), modern(), deep(1)})
    for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::bf16})
      for (const int count : {2, 7}) {
        if (test::brief() && count > 2) continue;
        SCOPED_TRACE(fmt::format("{} in {}, {} members", network.name(), name_of(precision), count));
        expect_members_as_alone(network, options(precision), count, 5);
      }
}

TEST_F(CudaMembers, MayBeMany) { expect_members_as_alone(residual(), options(Precision::bf16), 64, 3, 9); }

TEST_F(CudaMembers, HaveTheirBitsWithEveryOptimizer) {
  for (const kernels::OptimizerKind kind : {kernels::OptimizerKind::lars, kernels::OptimizerKind::adamw}) {
    StepOptions made = options(Precision::bf16);
    made.optimizer.kind = kind;
    expect_members_as_alone(residual(), made, 3, 4);
  }
}

TEST_F(CudaMembers, AreEvaluatedAsAlone) {
  MembersRun all(residual(), options(Precision::fp32), 0, 3);
  all.train(3);
  const double found = all.loss(2);
  MembersRun alone(residual(), options(Precision::fp32), 2, 1);
  alone.train(3);
  EXPECT_EQ(found, alone.loss(0));
}

// Members with even numbers share a batch, and members with odd numbers another. The images of both
// batches are in one ring of buffers on the GPU, and each member must read its own batch there.
TEST_F(CudaMembers, ShareTheirImages) {
  MembersRun run(residual(), options(Precision::fp32), 0, 5);
  const MemoryPlan& plan = run.session().memory().plan();
  EXPECT_EQ(plan.total(), plan.bytes(Region::images) + 5 * plan.stride());
  EXPECT_GE(plan.bytes(Region::images), std::int64_t{2} * kRingSlots * 4 * 8 * 8 * 3);
}

// Sessions of different shapes run at the same time or one after the other. Each step's images are
// copied to the GPU, or the first session stores all images. The bits must be those of a session
// alone.
TEST_F(CudaMembers, OfDifferentShapesHaveTheirBitsOnAnyNumberOfStreams) {
  using Kind = InputOptions::Kind;
  const std::vector<Network> networks{residual(), rectifying(), grouped()};
  const std::vector<double> work{1, 1, 1};
  for (const Kind kind : {Kind::streamed, Kind::resident}) {
    JoinedRun joined(networks, options(Precision::bf16), kind);
    for (const int streams : {3, 1, 2, 3}) {
      joined.joined().arrange(streams, work);
      joined.train(4);
    }
    for (std::size_t shape = 0; shape < networks.size(); ++shape) {
      JoinedRun alone({networks[shape]}, options(Precision::bf16), kind);
      alone.train(16);
      for (const int member : {0, 1})
        expect_same_member(joined.state(2 * static_cast<int>(shape) + member), alone.state(member), member);
    }
    EXPECT_EQ(joined.source().lent(), 0);
  }
}

}  // namespace
}  // namespace convoy::app
