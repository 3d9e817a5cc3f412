// How far a schedule exceeds the memory limits, for a local search that asks after every change.
// The rules are the simulator's (memory_use.cpp), but no curve over time is kept.
#pragma once

#include <optional>
#include <vector>

#include "partition/placement/live_bytes.h"
#include "partition/placement/schedule_state.h"

namespace convoy::partition {

class ScheduleMemory {
 public:
  explicit ScheduleMemory(const CostModel& cost) : cost_(cost) {}

  // Returns by how many bytes the devices together exceed their limits. If that is more than
  // `most`, it may return any number above `most`. Takes a pass over the graph.
  Bytes overflow(const ScheduleState& state, Bytes most = kUnlimited);
  // Lists the nodes that hold memory at the worst peak: on the device that exceeded its limit most
  // at the last overflow(). They have resident bytes or live outputs there, or read live copies.
  // May list a node twice, and lists none if no limit was exceeded.
  void nodes_at_peak(const ScheduleState& state, std::vector<NodeIndex>& nodes) const;

 private:
  // The copy of an output on another device.
  struct Copy {
    Bytes bytes = -1;  // -1 if there is no copy
    EdgeIndex edge = kNone;
    Nanoseconds start = 0, arrival = 0, until = 0;
  };
  struct Peak {
    DeviceIndex device = kNone;
    Nanoseconds when = 0;
    Bytes excess = 0;
  };
  void add_outputs(const ScheduleState& state, NodeIndex node);

  const CostModel& cost_;
  std::optional<LiveBytes> live_;
  Peak worst_;  // peak of the device with the largest excess
  // Scratch of add_outputs().
  std::vector<Copy> copies_;  // one element per device
  std::vector<DeviceIndex> receivers_;
};

}  // namespace convoy::partition
