// Tests single steps of the placement algorithms on graphs small enough to work out by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <limits>

#include "partition/placement/baselines.h"
#include "partition/placement/exhaustive.h"
#include "partition/placement/improvement.h"
#include "partition/placement/pardnn.h"
#include "tests/partition/graphs.h"

namespace convoy::partition {
namespace {

struct Task {
  Nanoseconds us;
  DeviceIndex pin = kNone;
  std::int32_t group = kNone;
  Bytes bytes = 1000;  // bytes of the node's output; the default takes 1 µs to transfer here
  Bytes resident = 0;
};

TaskGraph pinned_graph(const std::vector<Task>& tasks, const std::vector<std::pair<int, int>>& edges) {
  TaskGraphBuilder builder;
  for (std::size_t node = 0; node < tasks.size(); ++node) {
    TaskNode task;
    task.id = static_cast<std::int64_t>(node);
    task.time = 1000 * tasks[node].us, task.output_bytes = tasks[node].bytes;
    task.pin = tasks[node].pin, task.colocate = tasks[node].group;
    task.resident_bytes = tasks[node].resident;
    builder.add_node(task);
  }
  for (const auto& [from, to] : edges) builder.add_edge(from, to);
  return builder.build();
}

using Orders = std::vector<std::vector<NodeIndex>>;

// HEFT inserts nodes into idle time. Device 1 is idle for 11 µs before its pinned node 1. Node 2
// fills 9 of them and node 4 the other 2. Node 3 (6 µs) does not fit there, and runs on device 0.
TEST(Heft, InsertsOnlyWhereNothingRuns) {
  const TaskGraph graph = pinned_graph({{10, 0}, {10, 1}, {9}, {6}, {2}}, {{0, 1}});
  const Machine machine = Machine::uniform(2, {0, 1});
  const CostModel cost(graph, machine);
  const Placement placement = place_by_heft(cost, Units(graph, 2));
  EXPECT_EQ(placement.order, (Orders{{0, 3}, {2, 4, 1}}));
  EXPECT_EQ(simulate(cost, placement).makespan, 21'000);
}

// The best schedule needs node 2 before node 1. No move of the search can swap them, so the search
// must now and then order all nodes by list scheduling.
TEST(Improvement, ListsAgain) {
  const TaskGraph graph =
      pinned_graph({{10}, {10, 0}, {10, 0, 7}, {30, 1, kNone, 0}, {1, 0, 7}, {5}}, {{2, 3}, {3, 5}});
  const Machine machine = Machine::uniform(2, {0, 1});
  const CostModel cost(graph, machine);
  const Units units(graph, 2);
  const Placement begin{2, {0, 0, 0, 1, 0, 1}, {{0, 1, 2, 4}, {3, 5}}};
  ASSERT_EQ(simulate(cost, begin).makespan, 66'000);
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    ImprovementLimits limits;
    limits.moves = 10'000, limits.seed = seed;
    EXPECT_EQ(simulate(cost, improve(cost, units, begin, limits)).makespan, 46'000) << "listed again";
  }
}

// Transfers are so expensive here that only moving several nodes at once gains time. The search
// starts with all nodes on one device, and must get as short as the best list schedule of any
// placement.
TEST(Improvement, LeavesLocalOptima) {
  constexpr int kLayers = 5;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    Random random(seed);
    std::vector<Task> tasks;
    std::vector<std::pair<int, int>> edges;
    for (int node = 0; node < 3 * kLayers; ++node)
      tasks.push_back({5 + random.below(20), kNone, kNone, 1000 * (4 + random.below(20))});
    for (int layer = 0; layer < kLayers; ++layer) {
      const int forward = layer, backward = 2 * kLayers - 1 - layer, weights = 2 * kLayers + layer;
      if (layer > 0) edges.insert(edges.end(), {{forward - 1, forward}, {forward - 1, weights}});
      if (layer + 1 < kLayers) edges.push_back({backward - 1, backward});
      edges.push_back({forward, backward});
      edges.push_back({backward, weights});
    }
    const TaskGraph graph = pinned_graph(tasks, edges);
    const Machine machine = Machine::uniform(2, {0, 1});
    const CostModel cost(graph, machine);
    const Units units(graph, 2);
    Nanoseconds shortest = graph.total_time();
    for_each_placement(graph, units, 2, [&](const std::vector<DeviceIndex>& device_of) {
      shortest = std::min(shortest, simulate(cost, {2, device_of, {}}, Detail::kTimes).makespan);
      return true;
    });
    Placement begin{2, std::vector<DeviceIndex>(tasks.size(), 0), {}};
    begin.order = simulate(cost, begin).order;
    ImprovementLimits limits;
    limits.moves = 100'000, limits.seed = seed;
    EXPECT_LE(simulate(cost, improve(cost, units, begin, limits)).makespan, shortest) << "seed " << seed;
  }
}

// A cold search refuses longer schedules, so it gets stuck. It goes on only when its patience ends.
TEST(Improvement, GoesOnWhenPatienceEnds) {
  const TaskGraph graph = testing::random_graph(1, {.nodes = 100, .edge_share = 0.03});
  const Machine machine = Machine::uniform(4, {20'000, 1});
  const CostModel cost(graph, machine);
  const Units units(graph, 4);
  const Placement begin = place_contiguously(cost, units);
  const auto makespan = [&](std::int64_t patience) {
    ImprovementLimits limits;
    limits.moves = 20'000, limits.temperature = 1e-9, limits.patience = patience;
    return simulate(cost, improve(cost, units, begin, limits)).makespan;
  };
  EXPECT_LT(makespan(1000), makespan(std::numeric_limits<std::int64_t>::max()));
}

// Pinned groups refuse every move here. The limit on moves must still end the search.
TEST(Improvement, EndsWhereNothingCanMove) {
  const TaskGraph graph =
      pinned_graph({{10, 0, 0}, {10, 1, 1}, {10, 0, 0}, {10, 1, 1}}, {{0, 1}, {1, 2}, {2, 3}});
  const Machine machine = Machine::uniform(2, {0, 1});
  const CostModel cost(graph, machine);
  const Placement begin{2, {0, 1, 0, 1}, {{0, 2}, {1, 3}}};
  ImprovementLimits limits;
  limits.moves = 100;
  EXPECT_EQ(improve(cost, Units(graph, 2), begin, limits).device_of, begin.device_of);
}

// Node 2 could start earlier on device 1, but its parameters fit only on device 0.
TEST(Etf, PassesOverADeviceWithoutRoom) {
  const auto device_of = [](Bytes limit) {
    const TaskGraph graph =
        pinned_graph({{10, kNone, kNone, 0, 60}, {20, kNone, kNone, 0, 30}, {5, kNone, kNone, 0, 50}}, {});
    const Machine machine = Machine::uniform(2, {0, 1}, limit);
    return place_by_etf(CostModel(graph, machine), Units(graph, 2)).device_of;
  };
  EXPECT_EQ(device_of(kUnlimited), (std::vector<DeviceIndex>{1, 0, 1}));
  EXPECT_EQ(device_of(110), (std::vector<DeviceIndex>{1, 0, 1})) << "exactly full is not too full";
  EXPECT_EQ(device_of(100), (std::vector<DeviceIndex>{1, 0, 0}));
  EXPECT_EQ(device_of(60), (std::vector<DeviceIndex>{1, 0, 1})) << "without room anywhere limits are ignored";
}

// Returns the device that ParDNN's mapping chooses for each node, given these paths.
std::vector<DeviceIndex> mapped(const TaskGraph& graph, const Slices& slices) {
  const Machine machine = Machine::uniform(2, {0, 1});
  return map_clusters(CostModel(graph, machine), Units(graph, 2), slices).device_of;
}

// Device 0 is busy in the first half of the schedule, device 1 in the second. Node 2 runs in the
// first half and must go to device 1; node 3 runs in the second and must go to device 0.
TEST(Mapping, CountsTheLoadOfTheSpanOnly) {
  const TaskGraph graph = pinned_graph(
      {{10, kNone, kNone, 0}, {10, kNone, kNone, 0}, {8, kNone, kNone, 0}, {8}}, {{0, 1}, {2, 1}, {0, 3}});
  EXPECT_EQ(mapped(graph, {{{0}, {1}}, {{2}, {3}}}), (std::vector<DeviceIndex>{0, 1, 1, 0}));
}

// Node 3 reads a tensor on device 0. Its transfer takes 15 µs, and leaving device 0 saves 10 µs of
// load. Without slack, node 3 must stay. With 9 µs of slack, only 6 µs of the transfer count, and
// node 3 must move.
TEST(Mapping, WeighsTheCommunicationThatSlackCannotHide) {
  const auto device_of_3 = [](Nanoseconds us) {
    const TaskGraph graph = pinned_graph({{10, kNone, kNone, 15'000}, {10}, {20}, {us}}, {{0, 1}, {0, 3}});
    return mapped(graph, {{{0, 1}, {2}}, {{3}}})[3];
  };
  EXPECT_EQ(device_of_3(10), 0);
  EXPECT_EQ(device_of_3(1), 1);
}

TEST(Mapping, TakesTheLighterDeviceAmongEquals) {
  // Both devices are idle while node 2 runs. It must go to device 1, which has less work in all: 5
  // µs against 20.
  const TaskGraph graph = pinned_graph({{20, kNone, kNone, 0}, {5}, {10}}, {{0, 2}});
  EXPECT_EQ(mapped(graph, {{{0}, {1}}, {{2}}}), (std::vector<DeviceIndex>{0, 1, 1}));
}

// The heavier node 3 must choose first and take the idle device. The lighter node 2 then shares
// device 0 with node 0.
TEST(Mapping, PlacesHeavyPathsFirst) {
  const TaskGraph graph =
      pinned_graph({{4}, {20}, {3, kNone, kNone, 0}, {10, kNone, kNone, 0}}, {{2, 1}, {3, 1}});
  EXPECT_EQ(mapped(graph, {{{0}, {1}}, {{2}, {3}}}), (std::vector<DeviceIndex>{0, 1, 0, 1}));
}

// Moving node 1 off the slow device 1 would make the schedule longer: 18 µs instead of 17. Because
// speeds differ, no estimate shows that early, so only the simulated schedule can refuse the move.
TEST(Refinement, KeepsNothingLonger) {
  const TaskGraph graph = pinned_graph({{10}, {3}, {5, 0}}, {{0, 1}});
  Machine machine = Machine::uniform(2, {0, 1});
  machine.device(1).speed = 0.5;
  const CostModel cost(graph, machine);
  const Placement begin{2, {0, 1, 0}, {{0, 2}, {1}}};
  ASSERT_EQ(simulate(cost, begin).makespan, 17'000);
  EXPECT_EQ(simulate(cost, refine(cost, Units(graph, 2), begin)).makespan, 17'000);
}

// One node with half of the work leaves METIS parts without vertices. METIS then prints a warning,
// which must not reach standard output, where `--json` prints its object.
TEST(Metis, KeepsStandardOutputClean) {
  std::vector<Nanoseconds> times(60, 10);
  std::vector<std::pair<int, int>> edges;
  times[30] = 2000;
  for (int node = 1; node < 60; ++node) edges.emplace_back(node - 1, node);
  const TaskGraph graph = testing::graph_of(times, edges);
  const Machine machine = Machine::uniform(16, testing::kFastLink);
  const CostModel cost(graph, machine);
  ::testing::internal::CaptureStdout();
  const Placement placement = place_by_metis(cost, Units(graph, 16));
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
  EXPECT_NO_THROW(check_placement(graph, placement));
  ::testing::internal::CaptureStdout();
  std::puts("still open");
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "still open\n");
}

}  // namespace
}  // namespace convoy::partition
