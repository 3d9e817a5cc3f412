#include "comm/placement/rank_placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace convoy::comm {
namespace {

std::vector<int> range(int first, int count) {
  std::vector<int> cores(static_cast<std::size_t>(count));
  std::iota(cores.begin(), cores.end(), first);
  return cores;
}

TEST(Topology, DividesTheCoresOfRanksThatShareThem) {
  for (int cores = 1; cores <= 20; ++cores)
    for (int ranks = 1; ranks <= 8; ++ranks) {
      const std::vector<std::vector<int>> allowed(static_cast<std::size_t>(ranks), range(4, cores));
      std::vector<int> used;
      for (int rank = 0; rank < ranks; ++rank) {
        const auto share = share_of_cores(allowed, rank);
        ASSERT_FALSE(share.empty()) << "a rank without a core cannot run";
        used.insert(used.end(), share.begin(), share.end());
        if (cores >= ranks) {
          EXPECT_GE(static_cast<int>(share.size()), cores / ranks);
        }
      }
      if (cores >= ranks) {
        EXPECT_EQ(used, range(4, cores)) << "every core once, in order";
      }
    }
}

TEST(Topology, LeavesALaunchersBindingAlone) {
  // The launcher has already bound the ranks. In the first case each rank has a core of its own. In
  // the second, two ranks share each socket.
  EXPECT_EQ(share_of_cores({{0}, {1}, {2}}, 1), range(1, 1));
  const std::vector<std::vector<int>> sockets{range(0, 8), range(0, 8), range(8, 8), range(8, 8)};
  EXPECT_EQ(share_of_cores(sockets, 0), range(0, 4));
  EXPECT_EQ(share_of_cores(sockets, 1), range(4, 4));
  EXPECT_EQ(share_of_cores(sockets, 3), range(12, 4));
}

TEST(Topology, WritesCoresAsRanges) {
  EXPECT_EQ(format_cores(std::vector<int>{}), "none");
  EXPECT_EQ(format_cores(std::vector<int>{5}), "5");
  EXPECT_EQ(format_cores(std::vector<int>{8, 0, 1, 2, 3, 10, 11}), "0-3,8,10-11");
}

TEST(Topology, KnowsTheCoresOfThisProcess) {
  const auto cores = allowed_cores();
  EXPECT_FALSE(cores.empty());
  EXPECT_TRUE(std::is_sorted(cores.begin(), cores.end()));
}

}  // namespace
}  // namespace convoy::comm
