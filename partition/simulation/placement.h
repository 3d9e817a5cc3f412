// The device of each node, and the order in which each device runs its nodes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "partition/simulation/machine.h"

namespace convoy::partition {

struct Placement {
  DeviceIndex devices = 0;
  std::vector<DeviceIndex> device_of;  // device of each node
  // For each device, its nodes in the order in which they run. If empty, list scheduling chooses
  // the order.
  std::vector<std::vector<NodeIndex>> order;
};

// Writes a placement as {"devices": K, "device_of": {"<id>": d}, "order": [[ids…]…], "names":
// {"<id>": "name"}}. The reader accepts files without "order" and "names". Names must equal those
// of the graph.
std::string placement_json(const TaskGraph& graph, const Placement& placement);
// Reads a placement. If the text is not a placement of this graph, throws a std::runtime_error that
// names `where` and the field.
Placement parse_placement_json(std::string_view text, const TaskGraph& graph, const std::string& where);

// Throws a std::runtime_error that names the first node with an error: it is not placed, violates
// its pin or its colocation group, is missing in the order, or occurs there twice.
void check_placement(const TaskGraph& graph, const Placement& placement);

}  // namespace convoy::partition
