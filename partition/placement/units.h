// A unit is the smallest set of nodes that can move to another device. It is a colocation group, or
// a single node outside any group.
#pragma once

#include <span>
#include <vector>

#include "partition/simulation/machine.h"

namespace convoy::partition {

class Units {
 public:
  // Throws std::runtime_error if a node is pinned to a device that does not exist.
  Units(const TaskGraph& graph, DeviceIndex devices);

  std::int32_t count() const { return static_cast<std::int32_t>(pin_.size()); }
  // Returns whether every unit is a single node. Then units and nodes have the same numbers.
  bool trivial() const { return unit_of_.empty(); }
  std::int32_t of(NodeIndex node) const { return trivial() ? node : unit_of_[node]; }
  // Returns the device to which the unit is pinned, or kNone.
  DeviceIndex pin(std::int32_t unit) const { return pin_[unit]; }
  std::span<const NodeIndex> nodes(std::int32_t unit) const {
    return {members_.data() + begin_[unit], static_cast<std::size_t>(begin_[unit + 1] - begin_[unit])};
  }

 private:
  std::vector<std::int32_t> unit_of_, begin_;
  std::vector<DeviceIndex> pin_;
  std::vector<NodeIndex> members_;
};

// Returns whether all devices and links are alike.
bool alike_devices(const CostModel& cost);
// Returns the last device to which a unit is pinned, or kNone.
DeviceIndex highest_pin(const Units& units);
// Returns whether all devices and links are alike and nothing is pinned. Then only the number of
// devices matters.
inline bool interchangeable(const CostModel& cost, const Units& units) {
  return alike_devices(cost) && highest_pin(units) == kNone;
}

// The devices assigned to units so far. A pinned unit has its device from the start.
class UnitDevices {
 public:
  explicit UnitDevices(const Units& units) : units_(units), device_(units.count()) {
    for (std::int32_t unit = 0; unit < units.count(); ++unit) device_[unit] = units.pin(unit);
  }
  DeviceIndex of_node(NodeIndex node) const { return device_[units_.of(node)]; }
  void set_node(NodeIndex node, DeviceIndex device) { device_[units_.of(node)] = device; }

 private:
  const Units& units_;
  std::vector<DeviceIndex> device_;
};

}  // namespace convoy::partition
