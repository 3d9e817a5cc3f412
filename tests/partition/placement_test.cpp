// Single steps of the placement algorithms, on graphs small enough to work out by hand.
#include <gtest/gtest.h>

#include "partition/placement/baselines.h"
#include "partition/simulation/simulator.h"
#include "tests/partition/graphs.h"

namespace convoy::partition {
namespace {

struct Task {
  Nanoseconds us;
  DeviceIndex pin = kNone;
  std::int32_t group = kNone;
  Bytes bytes = 1000;  // written: 1 µs of transfer on the machines here
};

TaskGraph pinned_graph(const std::vector<Task>& tasks, const std::vector<std::pair<int, int>>& edges) {
  TaskGraphBuilder builder;
  for (std::size_t node = 0; node < tasks.size(); ++node) {
    TaskNode task;
    task.id = static_cast<std::int64_t>(node);
    task.time = 1000 * tasks[node].us, task.output_bytes = tasks[node].bytes;
    task.pin = tasks[node].pin, task.colocate = tasks[node].group;
    builder.add_node(task);
  }
  for (const auto& [from, to] : edges) builder.add_edge(from, to);
  return builder.build();
}

using Orders = std::vector<std::vector<NodeIndex>>;

// Device 1 waits 11 µs for its pinned node 1. Node 2 takes 9 of them, so node 3 (6 µs) is better off behind
// node 0 on device 0, and node 4 fills the last 2 to the end.
TEST(Heft, InsertsOnlyWhereNothingRuns) {
  const TaskGraph graph = pinned_graph({{10, 0}, {10, 1}, {9}, {6}, {2}}, {{0, 1}});
  const Machine machine = Machine::uniform(2, {0, 1});
  const CostModel cost(graph, machine);
  const Placement placement = place_by_heft(cost, Units(graph, 2));
  EXPECT_EQ(placement.order, (Orders{{0, 3}, {2, 4, 1}}));
  EXPECT_EQ(simulate(cost, placement).makespan, 21'000);
}

}  // namespace
}  // namespace convoy::partition
