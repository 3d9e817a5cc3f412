// Tests which ranks share which processors, and how fast a stage (one rank's part of a partitioned
// step) runs while other stages run.
#include "app/model_parallel/shared_processors.h"

#include <gtest/gtest.h>

namespace convoy::app {
namespace {

using Cores = std::vector<int>;

std::vector<comm::RankPlacement> on(const std::vector<std::pair<std::string, Cores>>& places) {
  std::vector<comm::RankPlacement> ranks;
  for (const auto& [host, cores] : places) {
    ranks.emplace_back();
    ranks.back().host = host, ranks.back().cores = cores;
  }
  return ranks;
}
const std::vector<bool> kFirst{true, false}, kBoth{true, true};

TEST(SharedProcessors, RanksWithCoresOfTheirOwnShareOnlyMemory) {
  const SharedProcessors shared = share_processors(on({{"a", {0}}, {"a", {1}}}), 2, 1);
  EXPECT_EQ(shared.group_of, (Cores{0, 1}));
  EXPECT_EQ(shared.memory_of, (Cores{0, 0}));
  EXPECT_DOUBLE_EQ(shared.speed(0, kFirst, 2), 1);
  EXPECT_DOUBLE_EQ(shared.speed(0, kBoth, 2), 0.5);
}

TEST(SharedProcessors, RanksOfTwoHostsShareNothing) {
  const SharedProcessors shared = share_processors(on({{"a", {0}}, {"b", {0}}}), 2, 1);
  EXPECT_EQ(shared.group_of, (Cores{0, 1}));
  EXPECT_DOUBLE_EQ(shared.speed(0, kBoth, 2), 1);
}

TEST(SharedProcessors, FourRanksOnTwoCoresTakeTurns) {
  const Cores both{0, 1};
  const SharedProcessors shared =
      share_processors(on({{"a", both}, {"a", both}, {"a", both}, {"a", both}}), 4, 1);
  EXPECT_EQ(shared.group_of, (Cores{0, 0, 0, 0}));
  EXPECT_DOUBLE_EQ(shared.speed(0, {true, false, false, false}, 1.5), 1);
  EXPECT_DOUBLE_EQ(shared.speed(0, {true, true, false, false}, 1.5), 1 / 1.5);
  EXPECT_DOUBLE_EQ(shared.speed(0, {true, true, true, true}, 1.5), 0.5 / 1.5);
}

TEST(SharedProcessors, ThreadsOfARankNeedACoreEach) {
  const Cores both{0, 1};
  const SharedProcessors shared = share_processors(on({{"a", both}, {"a", both}}), 2, 2);
  EXPECT_DOUBLE_EQ(shared.speed(0, kFirst, 1), 1);
  EXPECT_DOUBLE_EQ(shared.speed(0, kBoth, 1), 0.5);
}

// Two replicas, in two stages each, run on four cores, and then on two. Both replicas run the same
// stage at the same time, so the model must count two busy ranks for one stage.
TEST(SharedProcessors, ReplicasRunAtTheSameTime) {
  const SharedProcessors apart = share_processors(on({{"a", {0}}, {"a", {1}}, {"a", {2}}, {"a", {3}}}), 2, 1);
  EXPECT_EQ(apart.group_of, (Cores{0, 1}));
  EXPECT_DOUBLE_EQ(apart.speed(0, kFirst, 4), 1 / (1 + 3 * (1.0 / 3)));
  EXPECT_DOUBLE_EQ(apart.speed(0, kBoth, 4), 0.25);
  const SharedProcessors together =
      share_processors(on({{"a", {0}}, {"a", {1}}, {"a", {0}}, {"a", {1}}}), 2, 1);
  EXPECT_DOUBLE_EQ(together.speed(0, kFirst, 1), 0.5);
}

}  // namespace
}  // namespace convoy::app
