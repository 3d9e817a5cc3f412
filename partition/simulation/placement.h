// The device of each node, and the order in which each device runs its nodes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "partition/simulation/machine.h"

namespace convoy::partition {

struct Placement {
  DeviceIndex devices = 0;
  std::vector<DeviceIndex> device_of;         // by node
  std::vector<std::vector<NodeIndex>> order;  // by device; empty: list scheduling decides
};

// {"devices": K, "device_of": {"<id>": d}, "order": [[ids…]…], "names": {"<id>": "name"}}; "order"
// and "names" may be missing when read, and names must be the graph's.
std::string placement_json(const TaskGraph& graph, const Placement& placement);
// Throws std::runtime_error that names `where` and the field if the text is not a placement of this
// graph.
Placement parse_placement_json(std::string_view text, const TaskGraph& graph, const std::string& where);

// Throws std::runtime_error that names the first node that is not placed, breaks its pin or its
// colocation group, or is missing from or doubled in the order.
void check_placement(const TaskGraph& graph, const Placement& placement);

}  // namespace convoy::partition
