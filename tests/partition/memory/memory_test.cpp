// Checks that placements never exceed memory limits, and that the partitioner calls nothing
// infeasible that fits if nodes are moved.
#include <gtest/gtest.h>

#include <cmath>
#include <ctime>

#include "partition/graph/generators.h"
#include "partition/memory/overflow.h"
#include "partition/partition.h"
#include "partition/placement/baselines.h"
#include "tests/partition/graphs.h"

namespace convoy::partition {
namespace {

using testing::graph_of;

PartitionOptions quick() {
  PartitionOptions options;
  options.move_limit = 100;
  options.threads = 1;
  return options;
}

TaskGraph resident_graph(const std::vector<Bytes>& sizes, Bytes output = 0) {
  TaskGraphBuilder builder;
  for (std::size_t node = 0; node < sizes.size(); ++node) {
    TaskNode task;
    task.id = static_cast<std::int64_t>(node);
    task.time = 1000, task.resident_bytes = sizes[node], task.output_bytes = output;
    builder.add_node(task);
    if (node > 0) builder.add_edge(static_cast<std::int64_t>(node) - 1, static_cast<std::int64_t>(node));
  }
  return builder.build();
}

std::string certificate(const TaskGraph& graph, const Machine& machine) {
  const CostModel cost(graph, machine);
  const PartitionResult result = partition_graph(cost, quick());
  EXPECT_FALSE(result.placement);
  EXPECT_TRUE(result.proven) << result.reason;
  return result.reason;
}

TEST(Memory, Certificates) {
  const Link link{0, 1};
  EXPECT_NE(certificate(resident_graph({60, 60, 60}), Machine::uniform(2, link, 80))
                .find("180 resident bytes, more than the 160"),
            std::string::npos);
  EXPECT_NE(certificate(resident_graph({60, 60, 60, 40}), Machine::uniform(2, link, 119))
                .find("220 resident bytes, in multiples of 20 bytes, of which 2 devices take 200 at most"),
            std::string::npos);
  EXPECT_NE(certificate(resident_graph({10, 70}, 20), Machine::uniform(2, link, 100))
                .find("node 1 alone needs 110 bytes (70 resident, 20 of inputs, 20 of output)"),
            std::string::npos);
  EXPECT_NE(
      certificate(resident_graph({60, 61, 62}), Machine::uniform(2, link, 100)).find("of the 3 largest"),
      std::string::npos);
}

// Tests the boundary of each proof of infeasibility: a graph that exactly fills the limits may fit,
// and one byte more cannot.
TEST(Memory, ExactlyFullIsNoProof) {
  const auto proof = [](const TaskGraph& graph, const Machine& machine) {
    return infeasibility_certificate(CostModel(graph, machine), Units(graph, machine.device_count()))
        .value_or("");
  };
  const auto expect_boundary = [&](const TaskGraph& full, const TaskGraph& over, const Machine& machine,
                                   const char* why) {
    EXPECT_EQ(proof(full, machine), "") << "a false proof: " << why;
    EXPECT_NE(proof(over, machine).find(why), std::string::npos) << proof(over, machine);
  };
  const Link link{0, 1};
  const Machine two = Machine::uniform(2, link, 100);
  expect_boundary(resident_graph({50, 50, 50, 50}), resident_graph({50, 50, 50, 51}), two,
                  "201 resident bytes, more than the 200");
  // All sizes are multiples of 20, so a device of 119 bytes holds at most 100.
  expect_boundary(resident_graph({60, 40, 60, 40}), resident_graph({60, 40, 60, 60}),
                  Machine::uniform(2, link, 119), "2 devices take 200 at most");
  expect_boundary(resident_graph({10, 60}, 20), resident_graph({10, 61}, 20), two,
                  "node 1 alone needs 101 bytes");
  expect_boundary(resident_graph({50, 50, 50}), resident_graph({50, 51, 51}), two,
                  "the smallest two hold 101");
  const auto pinned = [](Bytes last) {
    TaskGraphBuilder builder;
    for (int node = 0; node < 2; ++node) {
      TaskNode task;
      task.id = node, task.pin = 1, task.resident_bytes = node == 0 ? 50 : last;
      builder.add_node(task);
    }
    return builder.build();
  };
  expect_boundary(pinned(50), pinned(51), two, "pinned to device 1 hold 101 resident bytes");
}

TEST(Memory, ExactlyFittingParametersAreSpread) {
  const TaskGraph graph = resident_graph({50, 50, 50, 50, 50, 50});
  const Machine machine = Machine::uniform(3, {1000, 1}, 100);
  const CostModel cost(graph, machine);
  const PartitionResult result = partition_graph(cost, quick());
  ASSERT_TRUE(result.placement) << result.reason;
  for (const DeviceUtilisation& use : result.simulation.use) EXPECT_LE(use.peak_bytes, 100);
}

// Tries every placement of a small graph with list scheduling, to find out whether one fits, and
// the shortest makespan.
struct Exhaustive {
  bool feasible = false;
  Nanoseconds best = std::numeric_limits<Nanoseconds>::max();

  explicit Exhaustive(const CostModel& cost) {
    const NodeIndex nodes = cost.graph().node_count();
    const DeviceIndex devices = cost.device_count();
    Placement placement{devices, std::vector<DeviceIndex>(nodes, 0), {}};
    for (;;) {
      const Simulation simulation = simulate(cost, placement);
      if (memory_overflow(cost.machine(), simulation) == 0)
        feasible = true, best = std::min(best, simulation.makespan);
      NodeIndex node = 0;
      while (node < nodes && ++placement.device_of[node] == devices) placement.device_of[node++] = 0;
      if (node == nodes) return;
    }
  }
};

TEST(Memory, FindsWhatExhaustiveSearchFinds) {
  int feasible = 0, infeasible = 0, proofs = 0;
  double gaps = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const TaskGraph graph =
        testing::random_graph(seed, {.nodes = static_cast<NodeIndex>(3 + seed % 8), .edge_share = 0.3});
    const DeviceIndex devices = seed % 3 == 0 ? 3 : 2;
    Machine unlimited = Machine::uniform(devices, {10'000, 50});
    const CostModel free(graph, unlimited);
    const PartitionResult open = partition_graph(free, quick());
    Bytes peak = 0;
    for (const DeviceUtilisation& use : open.simulation.use) peak = std::max(peak, use.peak_bytes);
    // 3^10 simulations would take a second for each graph.
    if (devices == 3 && graph.node_count() > 8) continue;
    const double share = 0.5 + 0.1 * static_cast<double>(seed % 5);
    const Machine machine = Machine::uniform(
        devices, {10'000, 50}, std::max<Bytes>(1, static_cast<Bytes>(share * static_cast<double>(peak))));
    const CostModel cost(graph, machine);
    const Exhaustive truth(cost);
    PartitionOptions options = quick();
    options.move_limit = 2000;
    const PartitionResult result = partition_graph(cost, options);
    if (truth.feasible) {
      ++feasible;
      ASSERT_TRUE(result.placement) << "seed " << seed << ": called infeasible: " << result.reason;
      EXPECT_EQ(memory_overflow(machine, result.simulation), 0);
      gaps += static_cast<double>(result.simulation.makespan) /
                  static_cast<double>(std::max<Nanoseconds>(1, truth.best)) -
              1;
    } else {
      ++infeasible;
      proofs += result.proven;
      if (result.placement) {
        EXPECT_EQ(memory_overflow(machine, result.simulation), 0) << "another order may fit";
      } else if (!result.proven) {
        EXPECT_NE(result.reason.find("of all placements none fits in the orders tried"), std::string::npos)
            << result.reason;
      }
    }
  }
  EXPECT_GT(feasible, 10);
  EXPECT_GT(infeasible, 5);
  EXPECT_GT(proofs, 5);
  std::printf(
      "%d feasible, %d infeasible (%d proven); mean gap to the best placement by list scheduling %.2f %%\n",
      feasible, infeasible, proofs, 100 * gaps / feasible);
  EXPECT_LT(gaps / feasible, 0.05);
}

TEST(Memory, UnlimitedGapToTheOptimum) {
  double gaps = 0;
  constexpr int kGraphs = 30;
  for (std::uint64_t seed = 0; seed < kGraphs; ++seed) {
    const TaskGraph graph = testing::random_graph(seed, {.nodes = 9, .edge_share = 0.25});
    const Machine machine = Machine::uniform(2, {10'000, 50});
    const CostModel cost(graph, machine);
    PartitionOptions options = quick();
    options.move_limit = 2000;
    const PartitionResult result = partition_graph(cost, options);
    gaps += static_cast<double>(result.simulation.makespan) / static_cast<double>(Exhaustive(cost).best) - 1;
  }
  std::printf("mean gap to the best placement by list scheduling %.2f %%\n", 100 * gaps / kGraphs);
  EXPECT_LT(gaps / kGraphs, 0.01);
}

TEST(Memory, LimitsFallingTowardsTheFloor) {
  testing::Shape shape;
  shape.nodes = 120, shape.edge_share = 0.03;
  const TaskGraph graph = testing::random_graph(11, shape);
  const Machine open = Machine::uniform(4, testing::kFastLink);
  const PartitionResult unlimited = partition_graph(CostModel(graph, open), quick());
  Bytes peak = 0;
  for (const DeviceUtilisation& use : unlimited.simulation.use) peak = std::max(peak, use.peak_bytes);
  const Bytes floor = graph.total_resident_bytes() / 4;
  for (int step = 0; step < 4; ++step) {
    const Bytes limit = peak - (peak - floor) * step / 10;
    const Machine machine = Machine::uniform(4, testing::kFastLink, limit);
    const CostModel cost(graph, machine);
    const PartitionResult result = partition_graph(cost, quick());
    ASSERT_TRUE(result.placement) << "step " << step << ": " << result.reason;
    const Simulation judged = simulate(cost, *result.placement);
    for (const DeviceUtilisation& use : judged.use) EXPECT_LE(use.peak_bytes, limit);
  }
}

// The algorithm `improve` also tries every baseline and repairs its placement in the same way. So
// it must never be worse than a baseline alone.
TEST(Memory, UnderLimitsToBeCombinedIsNeverWorseThanABaselineAlone) {
  PartitionOptions options = quick();
  options.repair_time = std::chrono::milliseconds(50);
  for (const std::uint64_t seed : {3, 5, 8}) {
    testing::Shape shape;
    shape.nodes = 40, shape.edge_share = 0.08;
    const TaskGraph graph = testing::random_graph(seed, shape);
    const Machine open = Machine::uniform(3, testing::kFastLink);
    Bytes peak = 0;
    for (const DeviceUtilisation& use : partition_graph(CostModel(graph, open), quick()).simulation.use)
      peak = std::max(peak, use.peak_bytes);
    const Bytes floor = graph.total_resident_bytes() / 3;
    const Machine machine = Machine::uniform(3, testing::kFastLink, floor + (peak - floor) / 3);
    const CostModel cost(graph, machine);
    options.algorithm = Algorithm::kImprove;
    const PartitionResult combined = partition_graph(cost, options);
    for (const Algorithm algorithm : {Algorithm::kOneDevice, Algorithm::kContiguous, Algorithm::kHeft,
                                      Algorithm::kEtf, Algorithm::kMetis, Algorithm::kParDnn}) {
      options.algorithm = algorithm;
      const PartitionResult alone = partition_graph(cost, options);
      if (!alone.placement) continue;
      ASSERT_TRUE(combined.placement) << seed << ": " << combined.reason;
      EXPECT_LE(combined.simulation.makespan, alone.simulation.makespan)
          << seed << " " << algorithm_name(algorithm);
    }
  }
}

// A looser memory limit, up to the peak without limits, must not give a longer schedule.
TEST(Memory, MakespansFallWithTheLimitOnLargeGraphs) {
  GeneratorOptions size;
  size.nodes = 600;
  const TaskGraph graph = generate_transformer(size);
  PartitionOptions options;
  options.move_limit = 300, options.threads = 1;
  const Machine open = Machine::uniform(4, testing::kFastLink);
  const PartitionResult unlimited = partition_graph(CostModel(graph, open), options);
  Bytes peak = 0;
  for (const DeviceUtilisation& use : unlimited.simulation.use) peak = std::max(peak, use.peak_bytes);
  const Bytes floor = unlimited.memory_floor;
  double tighter = std::numeric_limits<double>::max();
  for (const int share : {15, 25, 40, 60, 80, 100}) {
    const Bytes limit = floor + (peak - floor) * share / 100;
    const Machine machine = Machine::uniform(4, testing::kFastLink, limit);
    const PartitionResult result = partition_graph(CostModel(graph, machine), options);
    ASSERT_TRUE(result.placement) << share << ": " << result.reason;
    const auto makespan = static_cast<double>(result.simulation.makespan);
    RecordProperty(std::to_string(share), std::to_string(makespan));
    EXPECT_LE(makespan, tighter) << "at " << share << " % of the way";
    tighter = makespan;
  }
}

// The same must hold for limits within 0.6 % of the least possible one, where little fits.
TEST(Memory, MakespansFallWithTheLimitDownToTheFloor) {
  GeneratorOptions size;
  size.nodes = 600;
  const TaskGraph graph = generate_transformer(size);
  PartitionOptions options;
  options.move_limit = 1000;
  const Bytes floor =
      memory_floor(CostModel(graph, Machine::uniform(4, testing::kFastLink)), Units(graph, 4));
  Nanoseconds tighter = std::numeric_limits<Nanoseconds>::max();
  for (const double distance : {0.0, 0.001, 0.0015, 0.002, 0.003, 0.0045}) {
    const Bytes limit = floor + std::llround(distance * static_cast<double>(floor));
    const Machine machine = Machine::uniform(4, testing::kFastLink, limit);
    const PartitionResult result = partition_graph(CostModel(graph, machine), options);
    ASSERT_TRUE(result.placement) << distance << ": " << result.reason;
    EXPECT_LE(result.simulation.makespan, tighter) << "at " << distance << " above the floor";
    tighter = result.simulation.makespan;
  }
}

// The repair quickly fits METIS's placement of this graph into the lowest possible limit (the
// floor, 524,288,000 bytes), but would take far longer under some looser limits. So it starts with
// the floor, and these limits take 11 times as long, not 38 and 180 times. Processor time counts,
// so that a busy machine does not change the result.
TEST(Memory, LittleTimeIsEnoughAboveTheFloorToo) {
  GeneratorOptions generator;
  generator.nodes = 1500;
  const TaskGraph graph = generate_task_graph("transformer", generator);
  PartitionOptions options;
  options.algorithm = Algorithm::kMetis;
  options.time_limit = std::chrono::seconds(60);
  const auto seconds_of = [&](Bytes limit) {
    SCOPED_TRACE(limit);
    const std::clock_t start = std::clock();
    const Machine machine = Machine::uniform(4, {25'000, 130}, limit);
    const PartitionResult result = partition_graph(CostModel(graph, machine), options);
    EXPECT_TRUE(result.placement) << result.reason;
    return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  };
  const double floor = seconds_of(524'288'000);
  for (const Bytes limit : {530'000'000, 540'000'000}) {
    const double looser = seconds_of(limit);
    EXPECT_LT(looser, 20 * floor) << limit;
  }
}

// A placement must still be found close to the lowest feasible limit. The partitioner also repairs
// placements to tighter limits than the machine's. This sometimes succeeds where repairing to the
// machine's limit fails.
TEST(Memory, LooserLimitsMissNothingCloseToTheLeast) {
  GeneratorOptions size;
  size.nodes = 1500;
  const TaskGraph graph = generate_transformer(size);
  const Machine open = Machine::uniform(4, {25'000, 130});
  const CostModel free(graph, open);
  const auto floor = static_cast<double>(memory_floor(free, Units(graph, 4)));
  PartitionOptions options;
  options.move_limit = 200;
  for (const double share : {1.011, 1.0212}) {
    const Machine machine = Machine::uniform(4, {25'000, 130}, static_cast<Bytes>(share * floor));
    const PartitionResult result = partition_graph(CostModel(graph, machine), options);
    EXPECT_TRUE(result.placement) << share << ": " << result.reason;
  }
}

// The deadline must end the repair, although it may use 60 s of processor time.
TEST(Memory, RepairEndsAtTheDeadline) {
  const TaskGraph graph = testing::random_graph(1, {.nodes = 60, .edge_share = 0.1});
  const Machine machine =
      Machine::uniform(3, testing::kFastLink, graph.total_resident_bytes() / 3 + (1 << 20));
  const CostModel cost(graph, machine);
  const Units units(graph, 3);
  const Placement start = place_on_one_device(cost, units);
  const auto begin = std::chrono::steady_clock::now();
  const OverflowResult result = fit_memory(cost, units, start, Effort::kThorough, std::chrono::seconds(60),
                                           begin + std::chrono::milliseconds(100));
  ASSERT_FALSE(result.placement) << "fits, and shows nothing";
  EXPECT_TRUE(result.reason.starts_with("in the closest placement found, device ")) << result.reason;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

}  // namespace
}  // namespace convoy::partition
