// Small task graphs for the partitioner's tests.
#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "partition/graph/task_graph.h"
#include "partition/random.h"
#include "partition/simulation/machine.h"

namespace convoy::partition::testing {

inline constexpr Link kFastLink{25'000, 130};  // 25 µs and 130 GB/s, as in published results

struct Shape {
  NodeIndex nodes = 10;
  double edge_share = 0.3;  // share of all pairs of nodes that have an edge
  Nanoseconds longest = 100'000;
  Bytes largest = 1 << 20;
  // About how many nodes are in colocation groups, and how many are pinned.
  int groups = 0, pins = 0;
  DeviceIndex devices = 2;  // number of devices that pins choose from
  bool kinds = false;       // whether nodes have times for devices of kind "a" and "b"
};

// Returns a random graph. Edges go only to nodes with higher numbers. Some times and sizes are 0.
inline TaskGraph random_graph(std::uint64_t seed, const Shape& shape) {
  Random random(seed);
  TaskGraphBuilder builder;
  std::map<std::int32_t, std::int32_t> pin_of_group;
  for (NodeIndex node = 0; node < shape.nodes; ++node) {
    TaskNode task;
    task.id = node;
    task.time = random.below(8) == 0 ? 0 : random.below(shape.longest);
    task.output_bytes = random.below(8) == 0 ? 0 : random.below(shape.largest);
    task.resident_bytes = random.below(2) == 0 ? 0 : random.below(shape.largest);
    const bool grouped = random.below(shape.nodes) < shape.groups;
    if (grouped) task.colocate = static_cast<std::int32_t>(random.below(3));
    if ((!grouped || shape.pins > 0) && random.below(shape.nodes) < shape.pins) {
      task.pin = static_cast<std::int32_t>(random.below(shape.devices));
      // All pins of a group must be equal.
      if (grouped) task.pin = pin_of_group.emplace(task.colocate, task.pin).first->second;
    }
    if (shape.kinds) task.times = {{"a", task.time}, {"b", random.below(shape.longest)}};
    builder.add_node(task);
  }
  for (NodeIndex from = 0; from < shape.nodes; ++from)
    for (NodeIndex to = from + 1; to < shape.nodes; ++to)
      if (random.unit() < shape.edge_share) builder.add_edge(from, to);
  return builder.build();
}

// Returns a graph with these times in µs and these edges. Every node writes `bytes`.
inline TaskGraph graph_of(const std::vector<Nanoseconds>& times,
                          const std::vector<std::pair<int, int>>& edges, Bytes bytes = 1000) {
  TaskGraphBuilder builder;
  for (std::size_t node = 0; node < times.size(); ++node) {
    TaskNode task;
    task.id = static_cast<std::int64_t>(node);
    task.time = 1000 * times[node];
    task.output_bytes = bytes;
    builder.add_node(task);
  }
  for (const auto& [from, to] : edges) builder.add_edge(from, to);
  return builder.build();
}

}  // namespace convoy::partition::testing
