// A schedule of a small graph that is still being decided: what each device runs next is chosen
// when it becomes free.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>

#include "partition/simulation/simulator.h"

namespace convoy::partition {

inline constexpr NodeIndex kMostExactNodes = 12;
inline constexpr DeviceIndex kMostExactDevices = 8;

// Follows the simulator's rules to the nanosecond. Small enough to be copied at every choice.
class ExactState {
 public:
  static constexpr Nanoseconds kNever = std::numeric_limits<Nanoseconds>::max();

  ExactState(const CostModel& cost, std::span<const DeviceIndex> device_of);

  // Runs until a device must be told what comes next; kNone when all has ended or nothing can.
  DeviceIndex advance();
  void choose(DeviceIndex device, NodeIndex node) { device_[device].chosen = node; }
  // Tells whether the node could be the next of its device: all its producers there have run.
  bool selectable(NodeIndex node) const;
  bool ended() const { return ended_ == cost_->graph().node_count(); }
  Nanoseconds now() const { return now_; }
  // No schedule that continues this one is shorter.
  Nanoseconds bound() const;
  // Tells whether every device was within its limit until now().
  bool within_limits() const;
  Nanoseconds finish(NodeIndex node) const { return finish_[node]; }
  // Returns how many nodes started before this one, which has started. Nodes that last no time may
  // share a start.
  NodeIndex turn(NodeIndex node) const { return turn_[node]; }

 private:
  struct DeviceState {
    NodeIndex running = kNone, chosen = kNone;
    Nanoseconds free_at = 0, next_event = kNever;
    Nanoseconds sends_until = 0, receives_until = 0, left = 0;  // left: run time of what has not started
    std::int16_t nodes_left = 0;
    bool dirty = true;
  };
  struct Sent {  // a producer's tensor on its way to a device
    Nanoseconds start = kNever, arrival = kNever;
    Bytes bytes = 0;
  };

  bool try_start(DeviceIndex device);  // false when it must be told what comes next
  void end(DeviceIndex device);
  void send(NodeIndex node, DeviceIndex to, EdgeIndex slowest, Bytes bytes);
  Nanoseconds inputs_at(NodeIndex node) const;  // kNever while a producer runs
  Bytes live(DeviceIndex device, Nanoseconds time) const;
  Nanoseconds last_use(NodeIndex producer, DeviceIndex device) const;

  const CostModel* cost_;
  const DeviceIndex* device_of_;
  Nanoseconds now_ = -1;
  NodeIndex ended_ = 0, started_ = 0;
  std::array<Nanoseconds, kMostExactNodes> start_, finish_;
  std::array<NodeIndex, kMostExactNodes> turn_{};
  std::array<std::array<Sent, kMostExactDevices>, kMostExactNodes> sent_;
  std::array<DeviceState, kMostExactDevices> device_;
  std::array<Bytes, kMostExactDevices> resident_{};
};

}  // namespace convoy::partition
