// Computes by how much a schedule exceeds the memory limits. A local search calls it after every
// change. It has the simulator's rules (memory_use.cpp), but keeps no curve of the memory over
// time.
#pragma once

#include <optional>
#include <vector>

#include "partition/placement/live_bytes.h"
#include "partition/placement/schedule_state.h"

namespace convoy::partition {

class ScheduleMemory {
 public:
  explicit ScheduleMemory(const CostModel& cost) : cost_(cost) {}

  // Returns by how many bytes all devices together exceed their limits. If the result is above
  // `most`, it may be inexact, but it is then still above `most`. Takes a pass over the graph.
  Bytes overflow(const ScheduleState& state, Bytes most = kUnlimited);
  // Lists the nodes that held memory at the worst peak of the last overflow(), on the device that
  // exceeded its limit most. These are nodes with resident bytes or live outputs there, and readers
  // of live copies. A node may be listed twice. The list is empty if no limit was exceeded.
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
  Peak worst_;  // peak of the device that exceeds its limit most
  // Used inside add_outputs().
  std::vector<Copy> copies_;  // one element per device
  std::vector<DeviceIndex> receivers_;
};

}  // namespace convoy::partition
