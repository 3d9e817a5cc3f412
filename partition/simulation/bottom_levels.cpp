// Computes bottom levels in one pass over the reversed topological order. The bottom level of a
// node is the longest path from it to the end of the graph.
#include <algorithm>

#include "partition/simulation/simulator.h"

namespace convoy::partition {
namespace {

template <typename TransferTime>
std::vector<Nanoseconds> levels(const CostModel& cost, const TransferTime& transfer_time) {
  const TaskGraph& graph = cost.graph();
  std::vector<Nanoseconds> level(graph.node_count());
  const auto order = graph.topological_order();
  for (auto at = order.rbegin(); at != order.rend(); ++at) {
    Nanoseconds longest = 0;
    for (EdgeIndex edge = graph.out_begin(*at); edge < graph.out_end(*at); ++edge)
      longest = std::max(longest, level[graph.target(edge)] + transfer_time(edge));
    level[*at] = longest + cost.average_time(*at);
  }
  return level;
}

}  // namespace

std::vector<Nanoseconds> bottom_levels(const CostModel& cost) {
  return levels(cost, [](EdgeIndex) { return Nanoseconds{0}; });
}

std::vector<Nanoseconds> bottom_levels(const CostModel& cost, std::span<const DeviceIndex> device_of) {
  const TaskGraph& graph = cost.graph();
  return levels(cost, [&](EdgeIndex edge) {
    return cost.transfer_time(edge, device_of[graph.source(edge)], device_of[graph.target(edge)]);
  });
}

}  // namespace convoy::partition
