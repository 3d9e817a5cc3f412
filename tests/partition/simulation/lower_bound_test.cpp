// Checks that the lower bound is never above the best placement, and as high as a bound from the
// sums of node times can be.
#include <gtest/gtest.h>

#include "partition/partition.h"
#include "partition/placement/exhaustive.h"
#include "tests/partition/graphs.h"

namespace convoy::partition {
namespace {

TaskGraph graph_in_ns(const std::vector<Nanoseconds>& times,
                      const std::vector<std::pair<int, int>>& edges = {}) {
  TaskGraphBuilder builder;
  for (std::size_t node = 0; node < times.size(); ++node) {
    TaskNode task;
    task.id = static_cast<std::int64_t>(node);
    task.time = times[node];
    builder.add_node(task);
  }
  for (const auto& [from, to] : edges) builder.add_edge(from, to);
  return builder.build();
}

Nanoseconds bound_of(const TaskGraph& graph, const Machine& machine) {
  return makespan_lower_bound(CostModel(graph, machine));
}

Nanoseconds best_of_all(const CostModel& cost) {
  Nanoseconds best = std::numeric_limits<Nanoseconds>::max();
  const DeviceIndex devices = cost.device_count();
  for_each_placement(
      cost.graph(), Units(cost.graph(), devices), devices, [&](const std::vector<DeviceIndex>& device_of) {
        best = std::min(best, simulate(cost, {devices, device_of, {}}, Detail::kTimes).makespan);
        return true;
      });
  return best;
}

TEST(LowerBound, IsAMultipleOfTheTimesCommonDivisor) {
  const Machine two = Machine::uniform(2, {0, 1}), three = Machine::uniform(3, {0, 1});
  EXPECT_EQ(bound_of(graph_in_ns({30, 30, 30}), two), 60);
  EXPECT_EQ(bound_of(graph_in_ns({6, 10, 14, 0}), three), 10 + 4);
  EXPECT_EQ(bound_of(graph_in_ns({6, 10, 13}), two), 15);
  EXPECT_EQ(bound_of(graph_in_ns({0, 0}), two), 0);
  EXPECT_EQ(bound_of(graph_in_ns({}), two), 0);
  EXPECT_EQ(bound_of(graph_in_ns({40, 10, 20}, {{0, 1}}), two), 50) << "the critical path";
}

// Compares the bound with the best of all placements. Transfers take no time here.
TEST(LowerBound, IsNeverAboveTheOptimum) {
  int tight = 0, cases = 0, fractional = 0;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    Random random(seed);
    const Nanoseconds divisor = 1 + random.below(4), longest = seed % 3 == 0 ? 3 : 40;
    std::vector<Nanoseconds> times(1 + random.below(6));
    for (Nanoseconds& time : times) time = divisor * random.below(longest);
    std::vector<std::pair<int, int>> edges;
    for (int to = 1; seed % 4 == 3 && to < std::ssize(times); ++to)
      if (random.below(2) == 0) edges.emplace_back(static_cast<int>(random.below(to)), to);
    const TaskGraph graph = graph_in_ns(times, edges);
    Machine machine = Machine::uniform(2 + static_cast<DeviceIndex>(random.below(2)), {0, 1});
    const bool alike = seed % 2 == 0;
    for (DeviceIndex device = 0; !alike && device < machine.device_count(); ++device)
      machine.device(device).speed = 0.5 + 3 * random.unit();
    const CostModel cost(graph, machine);
    const Nanoseconds bound = makespan_lower_bound(cost), best = best_of_all(cost);
    ASSERT_LE(bound, best) << "seed " << seed;
    if (!alike) continue;
    const Nanoseconds loads = (graph.total_time() + machine.device_count() - 1) / machine.device_count();
    fractional += bound > std::max(loads, graph.critical_path());
    tight += bound == best, ++cases;
  }
  EXPECT_GT(tight, cases / 3) << "of " << cases;
  EXPECT_GT(fractional, 20) << "the divisor never mattered";
}

// Run times are rounded to nanoseconds. On a device of speed 3, 1 ns becomes 0, so the bound must
// be 0, too.
TEST(LowerBound, CountsRunTimesAsRounded) {
  Machine machine = Machine::uniform(2, {0, 1});
  machine.device(0).speed = machine.device(1).speed = 3;
  EXPECT_EQ(bound_of(graph_in_ns(std::vector<Nanoseconds>(20, 1)), machine), 0);
  EXPECT_EQ(bound_of(graph_in_ns({1, 1, 1, 1}, {{0, 1}, {1, 2}, {2, 3}}), machine), 0);
  machine.device(1).speed = 1;  // on the other device, 2 ns become 1 ns
  EXPECT_EQ(bound_of(graph_in_ns(std::vector<Nanoseconds>(8, 2)), machine), 4);
}

// Five nodes of 10 ns on two devices take 30 ns, because 25 ns each is impossible. The bound must
// know that, so that the search stops at the first candidate, which takes 30 ns.
TEST(LowerBound, StopsTheSearchWhereLoadsCannotBeEven) {
  const TaskGraph graph = graph_in_ns({10, 10, 10, 10, 10});
  const Machine machine = Machine::uniform(2, {0, 1});
  PartitionOptions options;
  options.threads = 1;
  const PartitionResult result = partition_graph(CostModel(graph, machine), options);
  EXPECT_EQ(result.simulation.makespan, 30);
  EXPECT_EQ(result.candidates.size(), 1u);
}

}  // namespace
}  // namespace convoy::partition
