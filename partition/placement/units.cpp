// Groups nodes into units. A unit is a set of nodes that must be on the same device.
#include "partition/placement/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace convoy::partition {

Units::Units(const TaskGraph& graph, DeviceIndex devices) {
  const NodeIndex nodes = graph.node_count();
  std::int32_t count = nodes;
  if (graph.group_count() > 0) {
    unit_of_.resize(nodes);
    count = graph.group_count();
    for (NodeIndex node = 0; node < nodes; ++node)
      unit_of_[node] = graph.group(node) != kNone ? graph.group(node) : count++;
  }
  pin_.assign(count, kNone);
  begin_.assign(count + 1, 0);
  for (NodeIndex node = 0; node < nodes; ++node) {
    ++begin_[of(node) + 1];
    if (graph.pin(node) == kNone) continue;
    if (graph.pin(node) >= devices)
      throw std::runtime_error(fmt::format("node {}: pin is {}, expected a device from 0 to {}",
                                           graph.label(node), graph.pin(node), devices - 1));
    pin_[of(node)] = graph.pin(node);
  }
  std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
  members_.resize(nodes);
  std::vector<std::int32_t> next(begin_.begin(), begin_.end() - 1);
  for (NodeIndex node = 0; node < nodes; ++node) members_[next[of(node)]++] = node;
}

bool alike_devices(const CostModel& cost) {
  for (DeviceIndex device = 1; device < cost.device_count(); ++device)
    if (cost.machine().device(device).memory_limit != cost.machine().device(0).memory_limit) return false;
  return cost.uniform();
}

DeviceIndex highest_pin(const Units& units) {
  DeviceIndex highest = kNone;
  for (std::int32_t unit = 0; unit < units.count(); ++unit) highest = std::max(highest, units.pin(unit));
  return highest;
}

}  // namespace convoy::partition
