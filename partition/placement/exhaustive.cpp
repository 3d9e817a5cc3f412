// Enumerates all placements by counting in base K, for K devices. Each unit (units.h) without a pin
// is one digit of the counter, and the digit is the device of the unit.
#include "partition/placement/exhaustive.h"

#include <cmath>

namespace convoy::partition {

double placement_count(const Units& units, DeviceIndex devices) {
  double free = 0;
  for (std::int32_t unit = 0; unit < units.count(); ++unit) free += units.pin(unit) == kNone ? 1 : 0;
  return std::pow(devices, free);
}

void for_each_placement(const TaskGraph& graph, const Units& units, DeviceIndex devices,
                        const std::function<bool(const std::vector<DeviceIndex>&)>& visit) {
  std::vector<DeviceIndex> device_of(graph.node_count(), 0);
  std::vector<std::int32_t> free;
  const auto assign = [&](std::int32_t unit, DeviceIndex device) {
    for (const NodeIndex node : units.nodes(unit)) device_of[node] = device;
  };
  for (std::int32_t unit = 0; unit < units.count(); ++unit) {
    if (units.pin(unit) == kNone)
      free.push_back(unit);
    else
      assign(unit, units.pin(unit));
  }
  std::vector<DeviceIndex> choice(free.size(), 0);
  while (visit(device_of)) {
    std::size_t digit = 0;
    for (; digit < free.size(); ++digit) {
      choice[digit] = (choice[digit] + 1) % devices;
      assign(free[digit], choice[digit]);
      if (choice[digit] != 0) break;
    }
    if (digit == free.size()) return;
  }
}

}  // namespace convoy::partition
