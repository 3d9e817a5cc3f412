// Enumerates every placement of a small graph.
#pragma once

#include <functional>

#include "partition/placement/units.h"

namespace convoy::partition {

// Returns the number of placements, which is devices^(units without a pin). May be infinity.
double placement_count(const Units& units, DeviceIndex devices);

// Calls visit with the device of each node for every placement that respects pins and groups. Stops
// when visit returns false.
void for_each_placement(const TaskGraph& graph, const Units& units, DeviceIndex devices,
                        const std::function<bool(const std::vector<DeviceIndex>&)>& visit);

}  // namespace convoy::partition
