// Enumerates every placement of a small graph.
#pragma once

#include <functional>

#include "partition/placement/units.h"

namespace convoy::partition {

// Returns how many placements there are: devices^(free units), or infinity.
double placement_count(const Units& units, DeviceIndex devices);

// Calls visit with the device of each node, once for every placement that keeps pins and groups,
// until visit returns false.
void for_each_placement(const TaskGraph& graph, const Units& units, DeviceIndex devices,
                        const std::function<bool(const std::vector<DeviceIndex>&)>& visit);

}  // namespace convoy::partition
