// Tests the planner, and the measurement of the links between ranks. The planner either divides a
// step into stages, one per rank, or leaves the whole step on one rank. It
//   - must leave the step on one rank if it fits there, and stages would be slower or hardly
//     faster;
//   - must choose stages if the step does not fit on one rank, or is clearly slower there;
//   - must not plan more memory for any rank than the whole step needs on one rank.
#include <gtest/gtest.h>

#include <algorithm>

#include "app/model_parallel/planner.h"
#include "app/timing/link_costs.h"
#include "comm/single_rank.h"
#include "tests/app/execute/ranks_on.h"
#include "tests/app/model/tiny_networks.h"

namespace convoy::app {
namespace {

using kernels::Backend;

class Planning : public testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    if (const std::string missing = test::missing_devices(GetParam()); !missing.empty())
      GTEST_SKIP() << missing;
    if (test::world().size() < 2) GTEST_SKIP() << "needs two ranks";
    stages_ = test::collectives_on(GetParam(), comm::Sums::small);
  }

  // Makes a plan as for --memory-limit `limit` (0: none). `device_bytes` are the free bytes of each
  // device (0: no devices). The step in stages is predicted to take `predicted` times as long as
  // on one rank. Every rank plans on its own.
  PartitionPlan plan(std::int64_t limit, double predicted, std::int64_t device_bytes = 0) {
    StepOptions options;
    options.backend = GetParam();
    options.memory_limit = limit;
    options.early_update_bytes = 0;
    const RankGroups groups{stages_.get(), &alone_, stages_.get()};
    MachineProfile profile;
    const auto stages = static_cast<std::size_t>(stages_->size());
    profile.links.assign(stages, std::vector<LinkCost>(stages));
    profile.processors = separate_processors(stages_->size());
    profile.device_bytes = device_bytes;
    const Network network = every_op();
    const CompiledSteps whole = compile_steps(network, options, groups);
    // Other ranks have a part in the gradients, so none is used before backward ends.
    EXPECT_TRUE(std::ranges::none_of(whole.train->graph.nodes, &Node::is<OptimizerUpdate>));
    PartitionPlanner planner(whole, options, groups, std::move(profile));
    const MeasuredOps ops = time_ops(whole, options, groups, planner.memory_limit());
    planner.place(ops);
    // Returns times of the stages that are `factor` times those of the whole step's operations.
    const auto stage_times = [&](double factor) {
      PlacedTimes placed{ops.passed.node_ms, std::vector<double>(ops.passed.node_ms.size(), 1),
                         std::vector<double>(stages, factor * ops.worked.update_ms_per_element)};
      for (double& time : placed.alone) time *= factor;
      return placed;
    };
    // Finds the factor that leads to the prediction. One rank that is far slower shows it.
    const double one_rank_ms = planner.choose(1, stage_times(1)).one_rank_ms;
    double factor = 1;
    for (int round = 0; round < 5; ++round)
      factor *= predicted * one_rank_ms / planner.choose(1e6, stage_times(factor)).predicted_step_ms;
    return planner.choose(1, stage_times(factor));
  }
  static void expect_whole(const PartitionPlan& plan) {
    EXPECT_EQ(plan.transfers, 0);
    EXPECT_EQ(plan.predicted_step_ms, plan.one_rank_ms);
    EXPECT_GT(plan.one_rank_ms, 0);
    EXPECT_EQ(plan.stages.front().arena_bytes, plan.one_rank_bytes);
    for (std::size_t stage = 1; stage < plan.stages.size(); ++stage)
      EXPECT_EQ(plan.stages[stage].operations, 0);
  }

  std::unique_ptr<comm::Collectives> stages_;
  comm::SingleRank alone_;
};

INSTANTIATE_TEST_SUITE_P(On, Planning, testing::Values(Backend::cpu, Backend::cuda),
                         [](const auto& info) { return info.param == Backend::cuda ? "Cuda" : "Cpu"; });

TEST_P(Planning, KeepsToOneRankThatIsHardlySlower) {
  expect_whole(plan(0, 2));
  expect_whole(plan(0, 0.97));
}

TEST_P(Planning, KeepsToStagesThatAreFaster) {
  const PartitionPlan fast = plan(0, 0.93);
  EXPECT_NEAR(fast.predicted_step_ms / fast.one_rank_ms, 0.93, 0.005);
}

TEST_P(Planning, KeepsToOneRankWithJustTheMemory) {
  const std::int64_t need = plan(1 << 30, 2).one_rank_bytes;
  expect_whole(plan(need, 2));
  const PartitionPlan less = plan(need - 1, 2);
  EXPECT_NEAR(less.predicted_step_ms / less.one_rank_ms, 2, 0.01);
  EXPECT_GT(less.transfers, 0);
  for (const StageSummary& stage : less.stages) EXPECT_LT(stage.arena_bytes, need);
}

TEST_P(Planning, BelievesNoLimitBeyondTheDevicesMemory) {
  const std::int64_t need = plan(1 << 30, 2).one_rank_bytes;
  expect_whole(plan(need, 2, need));
  EXPECT_GT(plan(2 * need, 2, need).transfers, 0);
  expect_whole(plan(2 * need, 2, need / 15 * 16 + 32));
  EXPECT_GT(plan(0, 2, need).transfers, 0);
  try {
    plan(2 * need, 2, 1000);
    FAIL() << "a step was planned within 1000 bytes";
  } catch (const std::runtime_error& error) {
    EXPECT_TRUE(std::string_view(error.what())
                    .starts_with("15/16 of the free memory of the fullest device 930 bytes"))
        << error.what();
  }
}

TEST_P(Planning, MeasuresEveryLink) {
  const auto links = measure_links(*stages_, GetParam(), stages_->size());
  ASSERT_EQ(std::ssize(links), stages_->size());
  for (std::size_t a = 0; a < links.size(); ++a)
    for (std::size_t b = 0; b < a; ++b) {
      const LinkCost& link = links[a][b];
      EXPECT_GT(link.latency_ms, 0);
      EXPECT_LT(link.latency_ms, 1000);
      EXPECT_GT(link.bytes_per_ms, 1e3);
      EXPECT_EQ(link.latency_ms, links[b][a].latency_ms);
      EXPECT_EQ(link.bytes_per_ms, links[b][a].bytes_per_ms);
      EXPECT_GE(link.receiver_share, 0);
      EXPECT_LE(link.receiver_share, 1);
      EXPECT_EQ(link.in_turn, GetParam() == Backend::cuda);
    }
  if (GetParam() == Backend::cuda) {
    EXPECT_GT(measure_small_sum(*stages_), 0);
  }
}

}  // namespace
}  // namespace convoy::app
