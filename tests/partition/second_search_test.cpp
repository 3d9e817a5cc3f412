// Tests the partitioner's second local search, which also tries fewer devices. Its placements must
// be valid on all devices and never make a result worse.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "partition/graph/generators.h"
#include "partition/partition.h"
#include "tests/partition/graphs.h"

namespace convoy::partition {
namespace {

PartitionResult partition_with(const CostModel& cost, unsigned threads) {
  PartitionOptions options;
  options.move_limit = 4000;
  options.threads = threads;
  return partition_graph(cost, options);
}

void expect_valid(const CostModel& cost, const PartitionResult& result) {
  ASSERT_TRUE(result.placement);
  ASSERT_EQ(result.placement->devices, cost.device_count());
  ASSERT_NO_THROW(check_placement(cost.graph(), *result.placement));
  const Simulation simulation = simulate(cost, *result.placement);
  ASSERT_EQ(simulation.makespan, result.simulation.makespan);
  for (DeviceIndex device = 0; device < cost.device_count(); ++device)
    ASSERT_LE(simulation.use[device].peak_bytes, cost.machine().device(device).memory_limit);
}

// The result must be the same with one thread and with two. Eight devices must not give a schedule
// more than 1 % longer than four.
TEST(SecondSearch, IsThereWithOneThreadAndOnAnyWidth) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE(seed);
    const TaskGraph graph = testing::random_graph(seed, {.nodes = 150, .edge_share = 0.03});
    Machine narrow = Machine::uniform(4, {500'000, 1}), wide = Machine::uniform(8, {500'000, 1});
    narrow.set_contention(seed % 2 == 1), wide.set_contention(seed % 2 == 1);
    const CostModel on_eight(graph, wide), on_four(graph, narrow);
    const PartitionResult one = partition_with(on_eight, 1), two = partition_with(on_eight, 2);
    expect_valid(on_eight, two);
    EXPECT_EQ(two.simulation.makespan, one.simulation.makespan);
    EXPECT_LE(static_cast<double>(two.simulation.makespan),
              1.01 * static_cast<double>(partition_with(on_four, 2).simulation.makespan));
  }
}

// Expects on n devices a schedule that is no longer than on half of them, rounded up.
void expect_no_longer_than_on_half(const TaskGraph& graph, Link link, Bytes memory, bool contention,
                                   const PartitionOptions& options) {
  std::map<DeviceIndex, Nanoseconds> makespans;
  for (const DeviceIndex devices : {2, 3, 4, 6, 8}) {
    SCOPED_TRACE(devices);
    Machine machine = Machine::uniform(devices, link, memory);
    machine.set_contention(contention);
    const CostModel cost(graph, machine);
    const PartitionResult result = partition_graph(cost, options);
    expect_valid(cost, result);
    makespans[devices] = result.simulation.makespan;
    if (devices == 2) continue;
    EXPECT_LE(makespans[devices], makespans.at((devices + 1) / 2));
  }
}

// Single searches differ by several percent on small graphs. On these graphs few devices are about
// as good as many. So the search must find what a machine with half of the devices finds.
TEST(SecondSearch, FindsOnSmallGraphsWhatFewerDevicesFind) {
  PartitionOptions options;
  options.search_work = 2'000'000;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    SCOPED_TRACE(seed);
    const TaskGraph graph = testing::random_graph(seed, {.nodes = 100, .edge_share = 0.04});
    expect_no_longer_than_on_half(graph, {100'000, 1}, kUnlimited, seed % 2 == 0, options);
    Machine machine = Machine::uniform(6, {100'000, 1});
    machine.set_contention(seed % 2 == 0);
    const CostModel cost(graph, machine);
    options.threads = 1;
    const PartitionResult one = partition_graph(cost, options);
    options.threads = 2;
    EXPECT_EQ(partition_graph(cost, options).simulation.makespan, one.simulation.makespan);
  }
}

// Under contention none of these numbers of devices may give a longer schedule than a smaller one,
// also if a node is pinned. The number of threads must change nothing.
TEST(SecondSearch, FindsUnderContentionWhatAnyFewerDevicesFind) {
  PartitionOptions options;
  options.search_work = 2'000'000;
  std::vector<TaskGraph> graphs;
  for (const char* family : {"recurrent", "wide-resnet", "random"})
    graphs.push_back(generate_task_graph(family, {.nodes = 150}));
  graphs.push_back(testing::random_graph(1, {.nodes = 120, .edge_share = 0.05, .pins = 5}));
  for (const TaskGraph& graph : graphs) {
    Nanoseconds shortest = std::numeric_limits<Nanoseconds>::max();
    for (const DeviceIndex devices : {2, 3, 4, 5, 6, 7, 8, 12, 16}) {
      SCOPED_TRACE(devices);
      Machine machine = Machine::uniform(devices, {25'000, 10});
      machine.set_contention(true);
      const CostModel cost(graph, machine);
      options.threads = 1 + devices % 3;
      const PartitionResult result = partition_graph(cost, options);
      expect_valid(cost, result);
      EXPECT_LE(result.simulation.makespan, shortest);
      shortest = std::min(shortest, result.simulation.makespan);
      if (devices > 4) continue;
      options.threads = 4;
      const PartitionResult again = partition_graph(cost, options);
      EXPECT_EQ(again.placement->device_of, result.placement->device_of);
      EXPECT_EQ(again.improvement.tried, result.improvement.tried);
    }
  }
}

// The same must hold under memory limits that some placements on two devices exceed.
TEST(SecondSearch, FindsUnderMemoryLimitsWhatFewerDevicesFind) {
  GeneratorOptions size;
  size.nodes = 80;
  PartitionOptions options;
  options.move_limit = 100;
  expect_no_longer_than_on_half(generate_random(size), {100'000, 1}, 173'524'053, false, options);
}

// In some of these cases the search must not use fewer devices: the memory limit is too low, the
// devices differ, or pins name devices.
TEST(SecondSearch, KeepsLimitsAndPins) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    testing::Shape shape{.nodes = 80, .edge_share = 0.05};
    shape.devices = 4, shape.pins = seed % 3 == 0 ? 10 : 0;
    const TaskGraph graph = testing::random_graph(seed, shape);
    Machine machine = Machine::uniform(4, {100'000, 5}, graph.total_resident_bytes());
    if (seed % 3 == 1) machine.device(0).memory_limit /= 2;
    if (seed % 4 == 1) machine.set_contention(true);
    if (seed % 4 == 3) machine.device(1).speed = 0.5;
    const CostModel cost(graph, machine);
    PartitionOptions options;
    options.search_work = 3'000'000;
    const PartitionResult result = partition_graph(cost, options);
    expect_valid(cost, result);
    for (NodeIndex node = 0; node < graph.node_count(); ++node)
      if (graph.pin(node) != kNone) {
        EXPECT_EQ(result.placement->device_of[node], graph.pin(node));
      }
  }
}

// The schedule found without limits must be found under every limit that its memory keeps.
TEST(LooseLimits, NeverLengthenTheSchedule) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const TaskGraph graph = testing::random_graph(seed, {.nodes = 40, .edge_share = 0.1});
    Machine machine = Machine::uniform(3, {100'000, 5});
    PartitionOptions options;
    options.search_work = 3'000'000;
    const PartitionResult open = partition_graph(CostModel(graph, machine), options);
    Bytes peak = 0;
    for (const DeviceUtilisation& use : open.simulation.use) peak = std::max(peak, use.peak_bytes);
    for (DeviceIndex device = 0; device < 3; ++device) machine.device(device).memory_limit = peak;
    const PartitionResult limited = partition_graph(CostModel(graph, machine), options);
    ASSERT_TRUE(limited.placement);
    EXPECT_LE(limited.simulation.makespan, open.simulation.makespan) << "seed " << seed;
  }
}

// If a search without limits reaches the lower bound within the limits, nothing else is tried.
TEST(LooseLimits, EndAtTheLowerBound) {
  int searched = 0;
  std::mt19937 random(1);
  for (int turn = 0; turn < 20; ++turn) {
    SCOPED_TRACE(turn);
    TaskGraphBuilder builder;
    for (int id = 0; id < 30; ++id) {
      TaskNode node;
      node.id = id, node.time = 1'000'000 * static_cast<Nanoseconds>(1 + random() % 100);
      node.resident_bytes = 1000 * static_cast<Bytes>(random() % 50), node.output_bytes = 1000;
      builder.add_node(node);
    }
    const TaskGraph graph = builder.build();
    Machine machine = Machine::uniform(2, {1000, 5});
    PartitionOptions options;
    options.search_work = 1'000'000;
    const PartitionResult open = partition_graph(CostModel(graph, machine), options);
    if (open.simulation.makespan > open.lower_bound || open.improvement.tried == 0) continue;
    ++searched;
    Bytes peak = 0;
    for (const DeviceUtilisation& use : open.simulation.use) peak = std::max(peak, use.peak_bytes);
    for (DeviceIndex device = 0; device < 2; ++device) machine.device(device).memory_limit = peak;
    const PartitionResult limited = partition_graph(CostModel(graph, machine), options);
    EXPECT_EQ(limited.simulation.makespan, open.lower_bound);
    EXPECT_EQ(limited.improvement.tried, open.improvement.tried);
  }
  EXPECT_GE(searched, 3);
}

}  // namespace
}  // namespace convoy::partition
