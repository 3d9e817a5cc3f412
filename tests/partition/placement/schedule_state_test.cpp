// Tests what the local search works on: paths of nodes, and the times and bytes of a schedule after
// moves.
#include "partition/placement/schedule_state.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "partition/memory/overflow.h"
#include "partition/placement/baselines.h"
#include "partition/placement/critical_path.h"
#include "partition/placement/node_queue.h"
#include "partition/placement/pardnn.h"
#include "partition/placement/schedule_memory.h"
#include "tests/partition/graphs.h"

namespace convoy::partition {
namespace {

TEST(Slicing, ClustersArePathsThatCoverTheGraph) {
  const TaskGraph graph = testing::random_graph(4, {.nodes = 200, .edge_share = 0.03});
  const Machine machine = Machine::uniform(4, testing::kFastLink);
  const CostModel cost(graph, machine);
  const Slices slices = slice(cost);
  ASSERT_EQ(slices.primary.size(), 4u);
  std::vector<int> seen(200, 0);
  Nanoseconds before = std::numeric_limits<Nanoseconds>::max();
  const auto check_path = [&](const std::vector<NodeIndex>& path) {
    Nanoseconds length = 0;
    for (std::size_t i = 0; i < path.size(); ++i) {
      ++seen[path[i]];
      length += graph.time(path[i]);
      if (i > 0) {
        EXPECT_TRUE(std::ranges::binary_search(graph.successors(path[i - 1]), path[i]));
      }
    }
    return length;
  };
  for (const auto& path : slices.primary) {
    check_path(path);
    // The length of this path, with transfers, must not exceed that of the path before.
    Nanoseconds length = 0;
    for (std::size_t i = 0; i < path.size(); ++i) {
      length += graph.time(path[i]);
      for (EdgeIndex edge = graph.out_begin(path[i]); i + 1 < path.size() && edge < graph.out_end(path[i]);
           ++edge)
        if (graph.target(edge) == path[i + 1]) length += cost.transfer_time(edge);
    }
    EXPECT_LE(length, before);
    before = length;
  }
  for (const auto& path : slices.secondary) check_path(path);
  EXPECT_EQ(seen, std::vector<int>(200, 1));
}

// After any moves, kept or undone, ScheduleMemory must give the same bytes over the limits as the
// simulator.
TEST(ScheduleMemory, ExceedsLimitsAsTheSimulationDoes) {
  int exceeded = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    testing::Shape shape{.nodes = 60, .edge_share = 0.08};
    const TaskGraph graph = testing::random_graph(seed, shape);
    Machine machine = Machine::uniform(3, {20'000, 50});
    machine.set_contention(seed % 2 == 1);
    const CostModel cost(graph, machine);
    const Placement begin = place_by_heft(cost, Units(graph, 3));
    Bytes peak = 0;
    for (const DeviceUtilisation& use : simulate(cost, begin).use) peak = std::max(peak, use.peak_bytes);
    for (DeviceIndex device = 0; device < 3; ++device)
      machine.device(device).memory_limit = peak * (8 + static_cast<Bytes>(seed % 5)) / 8;
    ScheduleState state(cost, begin.device_of, simulate(cost, begin));
    Random random(seed);
    ScheduleMemory memory(cost);
    std::vector<NodeIndex> at_peak;
    for (int round = 0; round < 60; ++round) {
      const auto node = static_cast<NodeIndex>(random.below(60));
      {
        ScheduleState::Move move = state.move_in_time(node, static_cast<DeviceIndex>(random.below(3)),
                                                      std::numeric_limits<Nanoseconds>::max() / 2);
        if (random.below(2) == 0) memory.overflow(state);
        if (move.finished() && random.below(3) != 0) move.commit();
      }
      const Bytes expected = memory_overflow(machine, simulate(cost, state.placement()));
      ASSERT_EQ(memory.overflow(state), expected) << "seed " << seed << " round " << round;
      exceeded += expected > 0;
      memory.nodes_at_peak(state, at_peak);
      ASSERT_EQ(at_peak.empty(), expected == 0);
    }
  }
  EXPECT_GT(exceeded, 100);
  EXPECT_LT(exceeded, 1000);
}

// Returns the length of the longest path from the end of the node to the end of the schedule.
Nanoseconds longest_tail(const ScheduleState& state, NodeIndex node) {
  const TaskGraph& graph = state.cost().graph();
  const auto rest = [&](NodeIndex next) { return state.finish(next) - state.start(next) + state.tail(next); };
  const NodeIndex after = state.next_on_device(node);
  Nanoseconds longest = after == kNone ? 0 : rest(after);
  for (EdgeIndex edge = graph.out_begin(node); edge < graph.out_end(node); ++edge) {
    const NodeIndex next = graph.target(edge);
    longest = std::max(
        longest, state.cost().transfer_time(edge, state.device_of(node), state.device_of(next)) + rest(next));
  }
  return longest;
}

// After any moves, kept or undone, ScheduleState must have the times of a fresh simulation.
void expect_times_of_simulation(bool contention) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    testing::Shape shape{.nodes = 120, .edge_share = 0.05};
    shape.kinds = seed % 5 == 1;
    const TaskGraph graph = testing::random_graph(seed, shape);
    Machine machine = Machine::uniform(3, {20'000, 50});
    machine.device(0).kind = "a", machine.device(1).kind = machine.device(2).kind = "b";
    machine.set_contention(contention);
    if (seed % 4 == 1) machine.set_link(0, 1, {100'000, 1});
    if (seed % 4 == 2) machine.device(2).speed = 0.5;
    const CostModel cost(graph, machine);
    const Placement begin = place_by_heft(cost, Units(graph, 3));
    ScheduleState state(cost, begin.device_of, simulate(cost, begin));
    Random random(seed);
    for (int round = 0; round < 80; ++round) {
      const auto node = static_cast<NodeIndex>(random.below(120));
      const auto device = static_cast<DeviceIndex>(random.below(3));
      constexpr Nanoseconds kNoLimit = std::numeric_limits<Nanoseconds>::max() / 2;
      const Nanoseconds limit = random.below(2) == 0 ? kNoLimit : state.makespan();
      const std::vector<Reassignment> moves = {{node, device}, {static_cast<NodeIndex>((node + 7) % 120), 0}};
      {
        ScheduleState::Move move =
            random.below(2) == 0 ? state.move_in_time(node, device, limit) : state.move(moves, limit);
        if (move.finished() && random.below(3) != 0) move.commit();
      }
      const Placement placement = state.placement();
      ASSERT_NO_THROW(check_placement(graph, placement));
      const Simulation fresh = simulate(cost, placement);
      ASSERT_EQ(state.makespan(), fresh.makespan) << "seed " << seed << " round " << round;
      for (NodeIndex at = 0; at < 120; ++at)
        ASSERT_EQ(state.start(at), fresh.start[at]) << "seed " << seed << " round " << round;
    }
    if (contention) continue;
    std::vector<NodeIndex> path;
    find_critical_path(state, path);
    EXPECT_EQ(state.start(path.front()), 0);
    for (NodeIndex node = 0; node < 120; ++node)
      ASSERT_EQ(state.tail(node), longest_tail(state, node)) << "seed " << seed << " node " << node;
  }
}

TEST(ScheduleState, EqualsSimulationAfterRandomMoves) { expect_times_of_simulation(false); }
TEST(ScheduleState, EqualsSimulationUnderContention) { expect_times_of_simulation(true); }

// A move must be finished if the makespan is exactly the allowed one, also after undone moves.
TEST(ScheduleState, FinishesMovesThatReachTheLimit) {
  const TaskGraph graph = testing::random_graph(3, {.nodes = 120, .edge_share = 0.05});
  Machine machine = Machine::uniform(3, {20'000, 50});
  machine.device(2).speed = 0.5;
  const CostModel cost(graph, machine);
  const Placement begin = place_by_heft(cost, Units(graph, 3));
  ScheduleState state(cost, begin.device_of, simulate(cost, begin));
  Random random(1);
  for (int round = 0; round < 200; ++round) {
    const std::vector<Reassignment> moves = {
        {static_cast<NodeIndex>(random.below(120)), static_cast<DeviceIndex>(random.below(3))}};
    Nanoseconds makespan = 0;
    {
      ScheduleState::Move move = state.move(moves, std::numeric_limits<Nanoseconds>::max() / 2);
      ASSERT_TRUE(move.finished());
      makespan = state.makespan();
    }
    ScheduleState::Move move = state.move(moves, makespan);
    ASSERT_TRUE(move.finished()) << "round " << round;
    if (round % 2 == 0) move.commit();
  }
}

TEST(NodeQueue, TakesTheLargestEntryFirst) {
  Random random(1);
  NodeQueue queue;
  std::multiset<NodeQueue::Entry> expected;
  for (int step = 0; step < 10'000; ++step) {
    ASSERT_EQ(queue.empty(), expected.empty());
    if (expected.empty() || random.below(2) == 0) {
      const NodeQueue::Entry entry{random.below(50), static_cast<NodeIndex>(random.below(9))};
      queue.add(entry);
      expected.insert(entry);
    } else {
      const auto largest = std::prev(expected.end());
      ASSERT_EQ(queue.take(), *largest) << "step " << step;
      expected.erase(largest);
    }
  }
  queue.clear();
  EXPECT_TRUE(queue.empty());
}

// A device cannot run all nodes in less than the sum of their times. The search must see this
// before it computes any time.
TEST(ScheduleState, RefusesOverloadedDevicesAtOnce) {
  const TaskGraph graph = testing::random_graph(3, {.nodes = 120, .edge_share = 0.05});
  const Machine machine = Machine::uniform(3, {20'000, 50});
  const CostModel cost(graph, machine);
  ASSERT_TRUE(cost.transfers_independent());
  const Placement begin = place_by_heft(cost, Units(graph, 3));
  ScheduleState state(cost, begin.device_of, simulate(cost, begin));
  std::vector<Reassignment> all;
  Nanoseconds load = 0;
  for (NodeIndex node = 0; node < 120; ++node) all.push_back({node, 0}), load += cost.run_time(node, 0);
  const std::int64_t before = state.work();
  EXPECT_FALSE(state.move(all, load - 1).finished());
  EXPECT_EQ(state.work(), before + work::kMove + 120 * work::kPass);
}

}  // namespace
}  // namespace convoy::partition
