// Compares the partitioner, on small graphs under memory limits, with a simulation of every
// placement in every order.
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "partition/memory/overflow.h"
#include "partition/partition.h"
#include "partition/placement/exact_schedule.h"
#include "tests/partition/graphs.h"

namespace convoy::partition {
namespace {

constexpr Nanoseconds kNothingFits = std::numeric_limits<Nanoseconds>::max();

// Simulates every placement with every order of the nodes on every device. Uses nothing of the
// search under test.
class Everything {
 public:
  struct Judged {
    Nanoseconds makespan;
    Bytes peak;  // the most bytes that a device needs
  };

  explicit Everything(const CostModel& cost)
      : cost_(cost), graph_(cost.graph()), placement_{cost.device_count(), {}, {}} {
    placement_.device_of.assign(graph_.node_count(), 0);
    place(0);
  }
  Nanoseconds shortest(Bytes limit = kUnlimited) const {
    Nanoseconds shortest = kNothingFits;
    for (const Judged& one : judged_)
      if (one.peak <= limit) shortest = std::min(shortest, one.makespan);
    return shortest;
  }
  // Returns the lowest memory limit at which some placement fits.
  Bytes least() const { return std::ranges::min_element(judged_, {}, &Judged::peak)->peak; }

 private:
  void place(NodeIndex node) {
    if (node == graph_.node_count()) {
      placement_.order.assign(cost_.device_count(), {});
      return order(0);
    }
    for (DeviceIndex device = 0; device < cost_.device_count(); ++device) {
      placement_.device_of[node] = device;
      place(node + 1);
    }
  }
  // Tries all orders of this device's nodes in which no consumer comes before its producer. For
  // each of them, tries all orders of the later devices.
  void order(DeviceIndex device) {
    if (device == cost_.device_count()) return judge();
    std::vector<NodeIndex> here;
    for (NodeIndex node = 0; node < graph_.node_count(); ++node)
      if (placement_.device_of[node] == device) here.push_back(node);
    do {
      const auto reversed = [&](EdgeIndex edge) {
        const auto from = std::ranges::find(here, graph_.source(edge)),
                   to = std::ranges::find(here, graph_.target(edge));
        return from != here.end() && to < from;
      };
      bool valid = true;
      for (EdgeIndex edge = 0; valid && edge < graph_.edge_count(); ++edge) valid = !reversed(edge);
      if (!valid) continue;
      placement_.order[device] = here;
      order(device + 1);
    } while (std::ranges::next_permutation(here).found);
  }
  void judge() {
    try {
      const Simulation simulation = simulate(cost_, placement_);
      Judged one{simulation.makespan, 0};
      for (const DeviceUtilisation& use : simulation.use) one.peak = std::max(one.peak, use.peak_bytes);
      judged_.push_back(one);
    } catch (const std::runtime_error&) {  // a deadlock: devices wait for each other
    }
  }
  const CostModel& cost_;
  const TaskGraph& graph_;
  Placement placement_;
  std::vector<Judged> judged_;
};

// Returns a random graph whose edges may carry more or fewer bytes than their producer writes.
TaskGraph graph_with_sizes(std::uint64_t seed, NodeIndex nodes, bool kinds = false) {
  Random random(seed);
  TaskGraphBuilder builder;
  const Nanoseconds times[] = {1'000, 4'000, 80'000, 200'000, 600'000};
  for (NodeIndex node = 0; node < nodes; ++node) {
    TaskNode task;
    task.id = node, task.time = random.below(9) == 0 ? 0 : times[random.below(5)];
    task.resident_bytes = 1000 * random.below(6), task.output_bytes = 1000 * random.below(6);
    if (kinds) task.times = {{"a", task.time}, {"b", times[random.below(5)]}};
    builder.add_node(task);
  }
  for (NodeIndex from = 0; from < nodes; ++from)
    for (NodeIndex to = from + 1; to < nodes; ++to)
      if (random.unit() < 0.35)
        builder.add_edge(from, to,
                         random.below(3) == 0 ? 1000 * random.below(9) : TaskGraphBuilder::kOutputBytes);
  return builder.build();
}

// Tries 400 graphs of up to eight nodes. The memory limit is from 2000 bytes below to 7000 bytes
// above the lowest limit at which a placement fits.
TEST(Exact, MissesNothingOfAllPlacementsInAllOrders) {
  int nothing = 0, tight = 0, raised = 0, compared = 0;
  double sum = 0, worst = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    constexpr NodeIndex kMostNodes[] = {4, 5, 6, 7, 6, 5, 4, 8};
    const TaskGraph graph = graph_with_sizes(seed, kMostNodes[seed % 8], seed % 7 == 3);
    Random random(seed);
    Machine machine = Machine::uniform(2, {5000, 0.1});
    machine.device(0).kind = "a", machine.device(1).kind = "b";
    machine.set_contention(seed % 3 == 1);
    if (seed % 5 == 2) machine.device(1).speed = 0.5;
    const CostModel free(graph, machine);
    const Everything everything(free);
    const Bytes limit = std::max<Bytes>(1, everything.least() + 1000 * (random.below(10) - 2));
    machine.device(0).memory_limit = machine.device(1).memory_limit = limit;
    const CostModel cost(graph, machine);
    const Nanoseconds shortest = everything.shortest(limit);
    nothing += shortest == kNothingFits;
    tight += shortest != kNothingFits && shortest > everything.shortest();
    PartitionOptions options;
    options.move_limit = 100, options.threads = 1;
    const PartitionResult result = partition_graph(cost, options);
    ASSERT_EQ(result.placement.has_value(), shortest != kNothingFits) << result.reason;
    if (!result.placement) {
      EXPECT_TRUE(result.proven) << result.reason;
      continue;
    }
    EXPECT_TRUE(result.optimal);
    EXPECT_EQ(memory_overflow(machine, result.simulation), 0);
    EXPECT_LE(makespan_lower_bound(cost), shortest);
    raised += graph.kinds().empty() && makespan_lower_bound(cost) > graph.lower_bound(2);
    const double ratio = static_cast<double>(result.simulation.makespan) / static_cast<double>(shortest);
    worst = std::max(worst, ratio), sum += ratio, ++compared;
  }
  EXPECT_EQ(worst, 1) << "of the optimum";
  EXPECT_EQ(sum / compared, 1) << "of the optimum, on average";
  EXPECT_GT(nothing, 20);
  EXPECT_GT(tight, 100);
  EXPECT_GT(raised, 10) << "the bound knows no transfers";
}

// A looser limit must never give a longer schedule.
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

// Twelve nodes without edges on three devices: 402 µs is a third of all times. Limits of 12,000 to
// 60,000 bytes allow that, and the last one even everything on one device.
TEST(Exact, SearchesTwelveNodesOnThreeDevices) {
  constexpr Nanoseconds kTimes[] = {91, 133, 118, 124, 77, 105, 80, 104, 65, 130, 123, 56};
  constexpr Bytes kOutput[] = {5, 1, 5, 9, 1, 1, 9, 9, 9, 1, 5, 1};
  TaskGraphBuilder builder;
  for (NodeIndex id = 0; id < 12; ++id) {
    TaskNode node;
    node.id = id, node.time = 1000 * kTimes[id], node.output_bytes = 1000 * kOutput[id];
    node.resident_bytes = id == 9 || id == 10 ? 3000 : id == 5 ? 1000 : 0;
    builder.add_node(node);
  }
  const TaskGraph graph = builder.build();
  for (const Bytes limit : {kUnlimited, Bytes{12'000}, Bytes{30'000}, Bytes{60'000}}) {
    const PartitionResult result =
        partition_graph(CostModel(graph, Machine::uniform(3, {25'000, 0.1}, limit)), {});
    ASSERT_TRUE(result.placement);
    EXPECT_EQ(result.simulation.makespan, 402'000) << "limit " << limit;
    EXPECT_TRUE(result.optimal);
    EXPECT_NE(result.complete_search, CompleteSearch::kGaveUp);
  }
}

// A complete search that has no time left must not be taken for one that found nothing.
TEST(Exact, SaysThatItGaveUp) {
  int done = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const TaskGraph graph = graph_with_sizes(seed, 12);
    const Machine machine = Machine::uniform(4, {5000, 0.1});
    const CostModel cost(graph, machine);
    PartitionOptions options;
    if (partition_graph(cost, options).complete_search != CompleteSearch::kDone) continue;
    ++done;
    options.time_limit = std::chrono::seconds(0);
    const PartitionResult result = partition_graph(cost, options);
    EXPECT_EQ(result.complete_search, CompleteSearch::kGaveUp) << "seed " << seed;
    EXPECT_FALSE(result.optimal) << "seed " << seed;
  }
  EXPECT_GE(done, 2);
}

}  // namespace
}  // namespace convoy::partition
