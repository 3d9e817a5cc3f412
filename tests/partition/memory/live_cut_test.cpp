// Tests the live cut, a lower bound on the bytes that any order of the nodes must hold at some
// time. It must not exceed what a placement needs, and must count the activations between forward
// and backward. Also tests that spreading memory over devices keeps pins, groups and limits.
#include "partition/memory/live_cut.h"

#include <gtest/gtest.h>

#include "partition/graph/generators.h"
#include "partition/memory/overflow.h"
#include "partition/partition.h"
#include "partition/simulation/simulator.h"
#include "tests/partition/graphs.h"

namespace convoy::partition {
namespace {

Bytes sum_of_peaks(const CostModel& cost, const Placement& placement) {
  Bytes sum = 0;
  for (const DeviceUtilisation& use : simulate(cost, placement).use) sum += use.peak_bytes;
  return sum;
}

// Returns a training step: forward nodes 0 to 4, the loss 5, backward nodes 6 to 10. Each backward
// node also reads the output of its forward node.
TaskGraph hourglass() {
  std::vector<std::pair<int, int>> edges;
  for (int node = 0; node < 10; ++node) edges.emplace_back(node, node + 1);
  for (int node = 0; node < 5; ++node) edges.emplace_back(node, 10 - node);
  return testing::graph_of(std::vector<Nanoseconds>(11, 5), edges);
}

TEST(LiveCut, FindsTheActivationsOfATrainingStep) {
  const TaskGraph graph = hourglass();
  const Machine machine = Machine::uniform(2, testing::kFastLink, 3499);
  const CostModel cost(graph, machine);
  const LiveCut cut = find_live_cut(cost);
  EXPECT_EQ(cut.bytes, 7000);  // outputs of nodes 0 to 6
  EXPECT_EQ(cut.node, 6);
  const std::optional<std::string> proof = live_certificate(cost, cut);
  ASSERT_TRUE(proof);
  EXPECT_NE(proof->find("while node 6 runs, 7000 bytes"), std::string::npos) << *proof;
  EXPECT_NE(proof->find("more than the 6998 bytes of 2 devices"), std::string::npos) << *proof;
  const PartitionResult result = partition_graph(cost, {});
  EXPECT_FALSE(result.placement);
  EXPECT_TRUE(result.proven);
  EXPECT_EQ(result.reason, *proof);
}

TEST(LiveCut, NothingIsProvenWhereItFits) {
  const TaskGraph graph = hourglass();
  const Machine enough = Machine::uniform(2, testing::kFastLink, 3500);
  EXPECT_FALSE(live_certificate(CostModel(graph, enough), find_live_cut(CostModel(graph, enough))));
  const Machine unlimited = Machine::uniform(2, testing::kFastLink);
  EXPECT_FALSE(live_certificate(CostModel(graph, unlimited), find_live_cut(CostModel(graph, unlimited))));
}

// A node may send fewer bytes than it writes. A consumer on another device then holds only the
// smaller copy, so the bound must count only the copy.
TEST(LiveCut, CountsTheSmallestThatMustBeHeld) {
  TaskGraphBuilder builder;
  for (int node = 0; node < 3; ++node) {
    TaskNode task;
    task.id = node, task.time = 1000, task.output_bytes = 1000;
    builder.add_node(task);
  }
  builder.add_edge(0, 1, 300);
  builder.add_edge(0, 2, 200);
  builder.add_edge(1, 2);
  const TaskGraph graph = builder.build();
  const Machine machine = Machine::uniform(2, testing::kFastLink);
  // While node 2 runs, memory holds the small copy of one input, the other input and the output.
  EXPECT_EQ(find_live_cut(CostModel(graph, machine)).bytes, 200 + 1000 + 1000);
}

TEST(LiveCut, NoPlacementHoldsLess) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    testing::Shape shape;
    shape.nodes = static_cast<NodeIndex>(2 + random.below(20)), shape.edge_share = 0.15;
    const TaskGraph graph = testing::random_graph(seed, shape);
    const auto devices = static_cast<DeviceIndex>(1 + random.below(4));
    const Machine machine = Machine::uniform(devices, testing::kFastLink);
    const CostModel cost(graph, machine);
    const Bytes bound = find_live_cut(cost).bytes + graph.total_resident_bytes();
    for (int round = 0; round < 10; ++round) {
      Placement placement{devices, {}, {}};
      for (NodeIndex node = 0; node < graph.node_count(); ++node)
        placement.device_of.push_back(static_cast<DeviceIndex>(random.below(devices)));
      ASSERT_GE(sum_of_peaks(cost, placement), bound) << "seed " << seed;
    }
  }
}

Placement spread(const TaskGraph& graph) {
  Machine machine = Machine::uniform(3, testing::kFastLink, 1 << 30);
  machine.device(2).memory_limit = Bytes{2} << 30;
  const CostModel cost(graph, machine);
  return place_by_memory(cost, Units(graph, 3), find_live_cut(cost));
}

TEST(LiveCut, SpreadsBytesByLimits) {
  testing::Shape shape;
  shape.nodes = 300, shape.edge_share = 0.01;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const TaskGraph graph = testing::random_graph(seed, shape);
    const Placement placement = spread(graph);
    const Machine machine = Machine::uniform(3, testing::kFastLink, 1 << 30);
    const LiveCut cut = find_live_cut(CostModel(graph, machine));
    std::vector<double> bytes(3, 0);
    for (NodeIndex node = 0; node < graph.node_count(); ++node)
      bytes[placement.device_of[node]] += static_cast<double>(graph.resident_bytes(node) + cut.kept[node]);
    EXPECT_NEAR(bytes[2] / bytes[0], 2, 0.2) << "seed " << seed;
    EXPECT_NEAR(bytes[1] / bytes[0], 1, 0.1) << "seed " << seed;
  }
}

TEST(LiveCut, TheSpreadKeepsPinsAndGroups) {
  testing::Shape shape;
  shape.nodes = 300, shape.edge_share = 0.01, shape.groups = 40, shape.pins = 20, shape.devices = 3;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const TaskGraph graph = testing::random_graph(seed, shape);
    const Units units(graph, 3);
    const Placement placement = spread(graph);
    for (NodeIndex node = 0; node < graph.node_count(); ++node) {
      if (graph.pin(node) != kNone) {
        EXPECT_EQ(placement.device_of[node], graph.pin(node));
      }
      EXPECT_EQ(placement.device_of[node], placement.device_of[units.nodes(units.of(node))[0]]);
    }
  }
}

// Parameters and activations fill nine tenths of the devices' memory, so the placements made for
// speed do not fit. The partitioner must find one that does.
TEST(LiveCut, AWideResNetFitsWhereItsActivationsDo) {
  GeneratorOptions options;
  options.nodes = 1579;
  const TaskGraph graph = generate_wide_resnet(options);
  const Machine open = Machine::uniform(4, testing::kFastLink);
  const Bytes least = find_live_cut(CostModel(graph, open)).bytes + graph.total_resident_bytes();
  const auto attempt = [&](double share) {
    const Machine machine =
        Machine::uniform(4, testing::kFastLink, static_cast<Bytes>(share * static_cast<double>(least) / 4));
    const CostModel cost(graph, machine);
    PartitionOptions little_work;
    little_work.search_work /= 10;
    PartitionResult result = partition_graph(cost, little_work);
    if (result.placement) {
      EXPECT_EQ(memory_overflow(machine, simulate(cost, *result.placement)), 0);
    }
    return result;
  };
  EXPECT_TRUE(attempt(1.1).placement);
  const PartitionResult impossible = attempt(0.99);
  EXPECT_FALSE(impossible.placement);
  EXPECT_TRUE(impossible.proven) << impossible.reason;
}

}  // namespace
}  // namespace convoy::partition
