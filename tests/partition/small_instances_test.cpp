// Checks that every algorithm gives valid placements of ten thousand small graphs with pins and
// groups.
#include <gtest/gtest.h>

#include "partition/partition.h"
#include "tests/partition/graphs.h"

namespace convoy::partition {
namespace {

constexpr Algorithm kAll[] = {Algorithm::kOneDevice, Algorithm::kContiguous, Algorithm::kHeft,
                              Algorithm::kEtf,       Algorithm::kMetis,      Algorithm::kParDnn,
                              Algorithm::kImprove};

TEST(SmallInstances, EveryAlgorithmKeepsPinsAndGroups) {
  for (std::uint64_t seed = 0; seed < 10'000; ++seed) {
    testing::Shape shape{.nodes = 1 + static_cast<NodeIndex>(seed % 9)};
    shape.edge_share = 0.1 * static_cast<double>(seed % 7);
    shape.groups = shape.nodes * static_cast<int>(seed % 4) / 3;
    shape.pins = shape.nodes * static_cast<int>(seed % 3) / 4;
    shape.devices = 1 + static_cast<DeviceIndex>(seed % 4);
    const TaskGraph graph = testing::random_graph(seed, shape);
    Machine machine = Machine::uniform(shape.devices, {static_cast<Nanoseconds>(seed % 5 * 10'000), 50});
    machine.set_contention(seed % 8 == 1);
    if (seed % 8 == 2) machine.device(0).speed = 0.5;
    const CostModel cost(graph, machine);
    PartitionOptions options;
    options.move_limit = 10;
    options.threads = 1;
    for (const Algorithm algorithm : kAll) {
      options.algorithm = algorithm;
      const PartitionResult result = partition_graph(cost, options);
      ASSERT_TRUE(result.placement) << "seed " << seed << ": " << result.reason;
      ASSERT_NO_THROW(check_placement(graph, *result.placement)) << "seed " << seed;
      ASSERT_EQ(simulate(cost, *result.placement).makespan, result.simulation.makespan) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace convoy::partition
