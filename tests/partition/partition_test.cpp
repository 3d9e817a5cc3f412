// Checks every algorithm on every shape of graph, and that the local search never makes a placement
// worse.
#include "partition/partition.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "partition/graph/generators.h"
#include "partition/graph/read_task_graph.h"
#include "partition/placement/baselines.h"
#include "partition/placement/pardnn.h"
#include "tests/partition/graphs.h"

namespace convoy::partition {
namespace {

using testing::graph_of;

const std::vector<Algorithm> kAll = {Algorithm::kOneDevice, Algorithm::kContiguous, Algorithm::kHeft,
                                     Algorithm::kEtf,       Algorithm::kMetis,      Algorithm::kParDnn,
                                     Algorithm::kImprove};

PartitionOptions few_moves(Algorithm algorithm) {
  PartitionOptions options;
  options.algorithm = algorithm;
  options.move_limit = 300;
  options.threads = 1;
  return options;
}

// Checks that each node is placed once, constraints hold, and the order respects the edges without
// a deadlock.
void expect_valid(const CostModel& cost, const PartitionResult& result, const char* name) {
  ASSERT_TRUE(result.placement) << name;
  ASSERT_NO_THROW(check_placement(cost.graph(), *result.placement)) << name;
  ASSERT_FALSE(result.placement->order.empty()) << name;
  Simulation simulation;
  ASSERT_NO_THROW(simulation = simulate(cost, *result.placement)) << name;
  ASSERT_EQ(simulation.makespan, result.simulation.makespan) << name;
  ASSERT_GE(simulation.makespan, result.lower_bound) << name;
  for (EdgeIndex edge = 0; edge < cost.graph().edge_count(); ++edge)
    ASSERT_LE(simulation.finish[cost.graph().source(edge)], simulation.start[cost.graph().target(edge)])
        << name;
  for (DeviceIndex device = 0; device < cost.device_count(); ++device)
    ASSERT_LE(simulation.use[device].peak_bytes, cost.machine().device(device).memory_limit) << name;
}

void expect_all_valid(const TaskGraph& graph, const Machine& machine) {
  const CostModel cost(graph, machine);
  Nanoseconds best = std::numeric_limits<Nanoseconds>::max();
  for (const Algorithm algorithm : kAll) {
    const PartitionResult result = partition_graph(cost, few_moves(algorithm));
    expect_valid(cost, result, algorithm_name(algorithm));
    if (algorithm == Algorithm::kImprove) {
      EXPECT_LE(result.simulation.makespan, best) << "worse than a baseline";
    }
    best = std::min(best, result.simulation.makespan);
  }
}

TEST(Partition, OddShapes) {
  const std::vector<TaskGraph> graphs = [] {
    std::vector<TaskGraph> list;
    list.push_back(graph_of({5}, {}));
    list.push_back(graph_of({0}, {}));
    list.push_back(graph_of({1, 2, 3, 4, 5}, {{0, 1}, {1, 2}, {2, 3}, {3, 4}}));
    list.push_back(
        graph_of({1, 5, 5, 5, 5, 1}, {{0, 1}, {0, 2}, {0, 3}, {0, 4}, {1, 5}, {2, 5}, {3, 5}, {4, 5}}));
    list.push_back(graph_of({3, 3, 3, 3}, {}));
    list.push_back(graph_of({0, 0, 0, 0}, {{0, 1}, {1, 2}, {0, 3}}));
    list.push_back(graph_of({4, 4, 4, 4}, {{0, 1}, {2, 3}}, 0));
    return list;
  }();
  for (const TaskGraph& graph : graphs)
    for (const DeviceIndex devices : {1, 2, 3, 7}) {
      SCOPED_TRACE(::testing::Message() << graph.node_count() << " nodes, " << devices << " devices");
      expect_all_valid(graph, Machine::uniform(devices, testing::kFastLink));
    }
}

TEST(Partition, RandomGraphsWithConstraints) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    testing::Shape shape;
    shape.nodes = 2 + static_cast<NodeIndex>(seed * 3 % 70);
    shape.edge_share = 0.02 * static_cast<double>(1 + seed % 10);
    shape.groups = seed % 3 == 0 ? shape.nodes / 3 : 0;
    shape.pins = seed % 2 == 0 ? shape.nodes / 4 : 0;
    shape.devices = 2 + static_cast<DeviceIndex>(seed % 3);
    TaskGraph graph = testing::random_graph(seed, shape);
    Machine machine = Machine::uniform(shape.devices, {static_cast<Nanoseconds>(seed % 5 * 10'000), 50});
    if (seed % 4 == 1) machine.device(0).speed = 0.5;
    if (seed % 4 == 2) machine.set_link(0, 1, {100'000, 1});
    if (seed % 4 == 3) machine.set_contention(true);
    expect_all_valid(graph, machine);
  }
}

TEST(Partition, EdgesOfDifferentSizes) {
  TaskGraphBuilder builder;
  for (int node = 0; node < 12; ++node) {
    TaskNode task;
    task.id = node, task.time = 50'000, task.output_bytes = 1000;
    builder.add_node(task);
  }
  for (int node = 1; node < 12; ++node) builder.add_edge(node / 3, node, 100'000 * node);
  expect_all_valid(builder.build(), Machine::uniform(3, {1000, 10}));
}

TEST(Partition, PinBeyondTheDevicesIsAnError) {
  TaskGraphBuilder builder;
  TaskNode node;
  node.pin = 5;
  builder.add_node(node);
  const TaskGraph graph = builder.build();
  const Machine machine = Machine::uniform(2, testing::kFastLink);
  const CostModel cost(graph, machine);
  EXPECT_THROW(partition_graph(cost, {}), std::runtime_error);
}

TEST(Partition, GeneratedGraphsAtEveryWidth) {
  for (const char* family : {"recurrent", "crn", "wide-resnet", "transformer", "e3d", "random"})
    for (const DeviceIndex devices : {2, 4, 8, 16}) {
      SCOPED_TRACE(::testing::Message() << family << " on " << devices);
      GeneratorOptions size;
      size.nodes = 1500;
      const TaskGraph graph = generate_task_graph(family, size);
      const Machine machine = Machine::uniform(devices, testing::kFastLink);
      const CostModel cost(graph, machine);
      const PartitionResult result = partition_graph(cost, few_moves(Algorithm::kImprove));
      expect_valid(cost, result, family);
      for (const Candidate& candidate : result.candidates)
        EXPECT_LE(result.simulation.makespan, candidate.makespan);
    }
}

// The search must stop at the first candidate that is as short as the lower bound. Otherwise it
// must make all candidates.
TEST(Partition, StopsAtTheBoundAndOnlyThere) {
  const Machine machine = Machine::uniform(2, testing::kFastLink);
  const TaskGraph apart = testing::graph_of({10, 10, 10, 10}, {});
  const CostModel easy(apart, machine);
  PartitionOptions options = few_moves(Algorithm::kImprove);
  options.threads = 1;
  const PartitionResult at_once = partition_graph(easy, options);
  expect_valid(easy, at_once, "independent nodes");
  EXPECT_EQ(at_once.simulation.makespan, at_once.lower_bound);
  EXPECT_EQ(at_once.candidates.size(), 1u);
  // Running the branches of this fork in parallel saves less than a transfer costs. The bound must
  // count that and be 40 µs, the time on one device.
  const TaskGraph fork = testing::graph_of({10, 10, 10, 10}, {{0, 1}, {0, 2}, {1, 3}, {2, 3}});
  const PartitionResult known = partition_graph(CostModel(fork, machine), options);
  EXPECT_EQ(known.simulation.makespan, known.lower_bound);
  // Two of the three nodes of 40 µs must share a device, so the bound, half of the total time, is
  // not reached.
  const TaskGraph uneven = testing::graph_of({40, 40, 40, 10}, {});
  const CostModel hard(uneven, machine);
  const PartitionResult tried = partition_graph(hard, options);
  expect_valid(hard, tried, "uneven");
  EXPECT_GT(tried.simulation.makespan, tried.lower_bound);
  EXPECT_TRUE(tried.optimal);
  EXPECT_EQ(tried.candidates.size(), 7u);
}

// If nodes are pinned to several devices, no schedule uses one device alone. If all pins name one
// device, that is the one.
TEST(Partition, OneDeviceIsThatOfThePins) {
  for (const DeviceIndex second : {1, 2}) {
    TaskGraphBuilder builder;
    for (std::int64_t id = 0; id < 3; ++id) {
      TaskNode node;
      node.id = id, node.time = 1000, node.output_bytes = 1000;
      if (id < 2) node.pin = id == 0 ? 1 : second;
      builder.add_node(node);
    }
    const TaskGraph graph = builder.build();
    const Machine machine = Machine::uniform(3, {1000, 1});
    for (const Algorithm algorithm : {Algorithm::kOneDevice, Algorithm::kHeft}) {
      const PartitionResult result = partition_graph(CostModel(graph, machine), few_moves(algorithm));
      EXPECT_EQ(result.one_device, second == 1 ? std::optional<Nanoseconds>(3000) : std::nullopt);
    }
  }
}

TEST(Partition, MovesInsteadOfTimeRepeat) {
  GeneratorOptions size;
  size.nodes = 800;
  const TaskGraph graph = generate_transformer(size);
  const Machine machine = Machine::uniform(4, testing::kFastLink);
  const CostModel cost(graph, machine);
  const auto once = partition_graph(cost, few_moves(Algorithm::kImprove));
  const auto again = partition_graph(cost, few_moves(Algorithm::kImprove));
  EXPECT_EQ(once.placement->device_of, again.placement->device_of);
  EXPECT_EQ(once.placement->order, again.placement->order);
}

// Without a time limit the search ends after a fixed amount of work, so its results do not depend
// on the run or the number of threads.
TEST(Partition, RepeatsWithoutATimeLimit) {
  GeneratorOptions size;
  size.nodes = 300;
  const TaskGraph graph = generate_transformer(size);
  Machine machine = Machine::uniform(4, testing::kFastLink);
  machine.set_contention(true);
  const CostModel cost(graph, machine);
  PartitionOptions options;
  options.search_work /= 10;
  const PartitionResult once = partition_graph(cost, options);
  options.threads = 1;
  const PartitionResult again = partition_graph(cost, options);
  EXPECT_EQ(once.placement->device_of, again.placement->device_of);
  EXPECT_EQ(once.placement->order, again.placement->order);
}

// Compares with published figures for public graphs, in µs. HEFT, contiguous and METIS were
// measured with other programs.

class SharedGraphs : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(CONVOY_TEST_DATA) / "graphs";
    if (!std::filesystem::exists(folder_))
      GTEST_SKIP() << "no " << folder_ << ": configure with -DCONVOY_TEST_DATA=FOLDER";
  }
  void expect_at_most(const char* file, Nanoseconds latency, double published_best, double bound_us,
                      double one_device_us) {
    const TaskGraph graph = read_task_graph(folder_ / file);
    const Machine machine = Machine::uniform(4, {latency, 130});
    const CostModel cost(graph, machine);
    PartitionOptions options;
    options.move_limit = 4000;
    const PartitionResult result = partition_graph(cost, options);
    expect_valid(cost, result, file);
    // The published bounds round each time to whole microseconds, at least to one.
    EXPECT_NEAR(static_cast<double>(graph.lower_bound(4)) / 1e3, bound_us, 0.001 * bound_us);
    EXPECT_GE(result.lower_bound, graph.lower_bound(4));
    EXPECT_NEAR(static_cast<double>(result.one_device.value()) / 1e3, one_device_us, 0.003 * one_device_us);
    EXPECT_LE(static_cast<double>(result.simulation.makespan) / 1e3, published_best);
    for (const Candidate& candidate : result.candidates)
      EXPECT_LE(result.simulation.makespan, candidate.makespan);
  }
  std::filesystem::path folder_;
};

TEST_F(SharedGraphs, TensorFlowResnet) { expect_at_most("pardnn_tf_resnet", 25'000, 58'367, 58'045, 69'781); }
TEST_F(SharedGraphs, MicrosoftResnet50) {
  expect_at_most("msr_resnet50_training_operators.json", 1000, 685'688, 592'395, 685'688);
}
TEST_F(SharedGraphs, MicrosoftInception) {
  expect_at_most("msr_inceptionv3_training_layers.json", 1000, 248'379, 238'201, 710'779);
}
TEST_F(SharedGraphs, MicrosoftBert3) {
  expect_at_most("msr_bert_l3_training_operators.json", 1000, 117'400, 113'440, 123'258);
}

}  // namespace
}  // namespace convoy::partition
