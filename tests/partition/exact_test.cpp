// Small graphs under memory limits against every placement in every order, judged by the simulator
// alone.
#include "partition/placement/exact.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "partition/memory/overflow.h"
#include "partition/partition.h"
#include "tests/partition/graphs.h"

namespace convoy::partition {
namespace {

constexpr Nanoseconds kNothingFits = std::numeric_limits<Nanoseconds>::max();

// The shortest makespan of all placements, with their nodes in all orders that edges allow.
class Everything {
 public:
  explicit Everything(const CostModel& cost) : cost_(cost), placed_(cost.graph().node_count(), kNone) {}
  Nanoseconds shortest() {
    extend();
    return shortest_;
  }

 private:
  void extend() {
    const TaskGraph& graph = cost_.graph();
    if (std::ssize(sequence_) == graph.node_count()) return judge();
    for (NodeIndex node = 0; node < graph.node_count(); ++node) {
      const auto waits = [&](EdgeIndex edge) { return placed_[graph.source(edge)] == kNone; };
      if (placed_[node] != kNone || std::ranges::any_of(graph.in_edges(node), waits)) continue;
      for (DeviceIndex device = 0; device < cost_.device_count(); ++device) {
        placed_[node] = device;
        sequence_.push_back(node);
        extend();
        sequence_.pop_back();
      }
      placed_[node] = kNone;
    }
  }
  void judge() {
    Placement placement{cost_.device_count(), placed_, {}};
    placement.order.resize(cost_.device_count());
    for (const NodeIndex node : sequence_) placement.order[placed_[node]].push_back(node);
    const Simulation simulation = simulate(cost_, placement);
    if (memory_overflow(cost_.machine(), simulation) == 0)
      shortest_ = std::min(shortest_, simulation.makespan);
  }
  const CostModel& cost_;
  std::vector<DeviceIndex> placed_;
  std::vector<NodeIndex> sequence_;
  Nanoseconds shortest_ = kNothingFits;
};

// Edges may carry more or less than their producer writes.
TaskGraph graph_with_sizes(std::uint64_t seed, NodeIndex nodes) {
  Random random(seed);
  TaskGraphBuilder builder;
  const Nanoseconds times[] = {1'000, 4'000, 80'000, 200'000, 600'000};
  for (NodeIndex node = 0; node < nodes; ++node) {
    TaskNode task;
    task.id = node, task.time = random.below(9) == 0 ? 0 : times[random.below(5)];
    task.resident_bytes = 1000 * random.below(6), task.output_bytes = 1000 * random.below(6);
    builder.add_node(task);
  }
  for (NodeIndex from = 0; from < nodes; ++from)
    for (NodeIndex to = from + 1; to < nodes; ++to)
      if (random.unit() < 0.35)
        builder.add_edge(from, to,
                         random.below(3) == 0 ? 1000 * random.below(9) : TaskGraphBuilder::kOutputBytes);
  return builder.build();
}

TEST(Exact, FindsWhatEveryOrderOfEveryPlacementHas) {
  int nothing = 0, tight = 0, raised = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    const TaskGraph graph = graph_with_sizes(seed, 3 + static_cast<NodeIndex>(seed % 3));
    Random random(seed);
    Machine machine = Machine::uniform(2, {5000, 0.1});
    machine.set_contention(seed % 3 == 1);
    if (seed % 5 == 2) machine.device(1).speed = 0.5;
    const CostModel free(graph, machine);
    const Nanoseconds unlimited = Everything(free).shortest();
    const Bytes limit = graph.total_resident_bytes() / 2 + 1000 * random.below(12);
    machine.device(0).memory_limit = machine.device(1).memory_limit = limit;
    const CostModel cost(graph, machine);
    const Nanoseconds shortest = Everything(cost).shortest();
    nothing += shortest == kNothingFits;
    tight += shortest != kNothingFits && shortest > unlimited;
    PartitionOptions options;
    options.move_limit = 100, options.threads = 1;
    const PartitionResult result = partition_graph(cost, options);
    ASSERT_EQ(result.placement.has_value(), shortest != kNothingFits) << result.reason;
    if (!result.placement) {
      EXPECT_TRUE(result.proven) << result.reason;
      continue;
    }
    EXPECT_EQ(result.simulation.makespan, shortest);
    EXPECT_LE(makespan_lower_bound(cost), shortest);
    raised += makespan_lower_bound(cost) > graph.lower_bound(2);
    EXPECT_TRUE(result.optimal);
    EXPECT_EQ(memory_overflow(machine, result.simulation), 0);
  }
  EXPECT_GT(nothing, 10);
  EXPECT_GT(tight, 10);
  EXPECT_GT(raised, 5) << "the bound knows no transfers";
}

// A looser limit never gives a longer schedule.
TEST(Exact, MakespansFallWithTheLimit) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const TaskGraph graph = graph_with_sizes(seed, 8);
    Nanoseconds before = kNothingFits;
    for (Bytes limit = graph.total_resident_bytes() / 2; limit <= graph.total_resident_bytes() + 8000;
         limit += 2000) {
      const Machine machine = Machine::uniform(2, {5000, 0.1}, limit);
      const CostModel cost(graph, machine);
      PartitionOptions options;
      options.move_limit = 100, options.threads = 1;
      const PartitionResult result = partition_graph(cost, options);
      if (!result.placement) continue;
      EXPECT_LE(result.simulation.makespan, before) << "seed " << seed << ", limit " << limit;
      before = result.simulation.makespan;
    }
  }
}

}  // namespace
}  // namespace convoy::partition
