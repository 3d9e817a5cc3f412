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
  // Nodes of each device in order; empty: list scheduling decides.
  std::vector<std::vector<NodeIndex>> order;
};

// The format is {"devices": K, "device_of": {"<id>": d}, "order": [[ids…]…], "names": {"<id>":
// "name"}}. The reader accepts files without "order" and "names". Names must be those of the graph.
std::string placement_json(const TaskGraph& graph, const Placement& placement);
// Throws std::runtime_error that names `where` and the field if the text is not a placement of this
// graph.
Placement parse_placement_json(std::string_view text, const TaskGraph& graph, const std::string& where);

// Throws std::runtime_error that names the first node that is not placed, breaks its pin or its
// colocation group, is missing from the order, or is in it twice.
void check_placement(const TaskGraph& graph, const Placement& placement);

}  // namespace convoy::partition
