// Ranks that outnumber their cores. Wrong would be: another makespan than the simulator's where there are cores enough, or one
// that a busy core cannot reach.
#include "partition/simulation/shared_processors.h"

#include <gtest/gtest.h>

#include "partition/simulation/simulator.h"
#include "tests/partition/graphs.h"

namespace convoy::partition {
namespace {

Placement placed(const CostModel& cost, const std::vector<DeviceIndex>& device_of) {
  Placement placement{cost.device_count(), device_of, {}};
  placement.order = simulate(cost, placement).order;
  return placement;
}

std::vector<DeviceIndex> random_devices(const TaskGraph& graph, DeviceIndex devices, Random& random) {
  std::vector<DeviceIndex> device_of;
  for (NodeIndex node = 0; node < graph.node_count(); ++node)
    device_of.push_back(static_cast<DeviceIndex>(random.below(devices)));
  return device_of;
}

TEST(SharedProcessors, WithCoresEnoughItIsTheSimulator) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    testing::Shape shape;
    shape.nodes = 30;
    const TaskGraph graph = testing::random_graph(seed, shape);
    const DeviceIndex devices = 2 + static_cast<DeviceIndex>(seed % 3);
    const Machine machine = Machine::uniform(devices, testing::kFastLink);
    const CostModel cost(graph, machine);
    const Placement placement = placed(cost, random_devices(graph, devices, random));
    const Nanoseconds expected = simulate(cost, placement).makespan;
    const std::vector<int> one_group(static_cast<std::size_t>(devices), 0);
    EXPECT_NEAR(simulate_shared(cost, placement, {one_group, {static_cast<double>(devices)}}), expected, 2);
  }
}

// Two independent chains of 30 and 10 µs: side by side until the short one ends, then the long one alone.
TEST(SharedProcessors, OneCoreDividesItsTime) {
  const TaskGraph graph = testing::graph_of({30, 10}, {});
  const Machine machine = Machine::uniform(2, testing::kFastLink);
  const CostModel cost(graph, machine);
  const Placement placement = placed(cost, {0, 1});
  EXPECT_EQ(simulate_shared(cost, placement, {{0, 0}, {1.0}}), 40'000);
  EXPECT_EQ(simulate_shared(cost, placement, {{0, 0}, {1.5}}),
            33'333);  // 10 µs of work take 13.3, 20 more alone
  EXPECT_EQ(simulate_shared(cost, placement, {{0, 1}, {1.0, 1.0}}), 30'000);
}

// Between the makespan with cores of its own for every rank and the time that all work takes on the cores there are.
TEST(SharedProcessors, NeverFasterThanItsCores) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    testing::Shape shape;
    shape.nodes = 30;
    shape.edge_share = 0.05;
    const TaskGraph graph = testing::random_graph(seed, shape);
    const Machine machine = Machine::uniform(4, testing::kFastLink);
    const CostModel cost(graph, machine);
    const Placement placement = placed(cost, random_devices(graph, 4, random));
    const Nanoseconds shared = simulate_shared(cost, placement, {{0, 0, 0, 0}, {2.0}});
    EXPECT_GE(shared + 2, simulate(cost, placement).makespan);
    EXPECT_GE(2 * shared + 2, graph.total_time());
  }
}

TEST(SharedProcessors, NamesADeadlock) {
  const TaskGraph graph = testing::graph_of({1, 1}, {{0, 1}});
  const Machine machine = Machine::uniform(1, testing::kFastLink);
  const CostModel cost(graph, machine);
  EXPECT_THROW(simulate_shared(cost, {1, {0, 0}, {{1, 0}}}, {{0}, {1.0}}), std::runtime_error);
}

}  // namespace
}  // namespace convoy::partition
