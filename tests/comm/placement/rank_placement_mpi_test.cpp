#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <thread>

#include "comm/placement/rank_placement.h"
#include "tests/mpi/world.h"

namespace convoy::comm {
namespace {

using test::world;

// Restores the process's binding to cores at the end, so that it does not change for other tests.
class SavedBinding {
 public:
  SavedBinding() { ::sched_getaffinity(0, sizeof set_, &set_); }
  ~SavedBinding() { ::sched_setaffinity(0, sizeof set_, &set_); }

 private:
  cpu_set_t set_{};
};

TEST(Topology, PinsEveryRankToItsShare) {
  const SavedBinding saved;
  const auto before = allowed_cores();
  std::vector<int> sorted = pin_to_cores(world());
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(allowed_cores(), sorted);
  EXPECT_TRUE(std::includes(before.begin(), before.end(), sorted.begin(), sorted.end()))
      << "no core that the launcher did not give";
  std::vector<int> inherited;
  std::thread([&] { inherited = allowed_cores(); }).join();
  EXPECT_EQ(inherited, sorted) << "threads started afterwards are bound too";

  const auto placements = gather_placement(world(), "device of " + std::to_string(world().rank()));
  ASSERT_EQ(std::ssize(placements), world().rank() == 0 ? world().size() : 0);
  std::set<int> used;
  std::size_t total = 0, most = 0;
  for (int rank = 0; rank < static_cast<int>(placements.size()); ++rank) {
    const RankPlacement& placement = placements[static_cast<std::size_t>(rank)];
    EXPECT_EQ(placement.rank, rank);
    EXPECT_EQ(placement.local_rank, rank) << "all on this host";
    EXPECT_EQ(placement.host, world().host_name());
    EXPECT_EQ(placement.device, "device of " + std::to_string(rank));
    EXPECT_GT(placement.pid, 0);
    used.insert(placement.cores.begin(), placement.cores.end());
    total += placement.cores.size();
    most = std::max(most, placement.cores.size());
  }
  if (world().rank() == 0) {
    EXPECT_EQ(placements[0].pid, ::getpid());
    EXPECT_EQ(placements[0].cores, sorted);
    EXPECT_TRUE(used.size() == total || most == 1) << "cores are shared only where there are more ranks";
  }
}

TEST(Topology, PlacesRanksWithoutADevice) {
  const auto placements = gather_placement(world());
  for (const auto& placement : placements) EXPECT_EQ(placement.device, "");
}

}  // namespace
}  // namespace convoy::comm
