// A schedule of a small graph that is still being decided: when a device becomes free, the caller
// chooses its next node.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>

#include "partition/simulation/simulator.h"

namespace convoy::partition {

inline constexpr NodeIndex kMostExactNodes = 12;
inline constexpr DeviceIndex kMostExactDevices = 8;

// Gives the simulator's times to the nanosecond. It is a small object, because the search copies it
// at every choice.
class ExactState {
 public:
  static constexpr Nanoseconds kNever = std::numeric_limits<Nanoseconds>::max();

  ExactState(const CostModel& cost, std::span<const DeviceIndex> device_of);

  // Runs until the caller must choose a device's next node, and returns that device. Returns kNone
  // if all nodes have ended or none can start.
  DeviceIndex advance();
  void choose(DeviceIndex device, NodeIndex node) { device_[device].chosen = node; }
  // Returns whether the node may come next on its device, because all its producers there have
  // started.
  bool selectable(NodeIndex node) const;
  bool ended() const { return ended_ == cost_->graph().node_count(); }
  Nanoseconds now() const { return now_; }
  // Returns a lower bound on the makespan, whatever is chosen from now on.
  Nanoseconds bound() const;
  // Returns whether every device was within its limit until now().
  bool within_limits() const;
  Nanoseconds finish(NodeIndex node) const { return finish_[node]; }
  // Returns how many nodes started before this one, which must have started. The number tells nodes
  // apart that start at the same time, as nodes with no duration can.
  NodeIndex turn(NodeIndex node) const { return turn_[node]; }

 private:
  struct DeviceState {
    NodeIndex running = kNone, chosen = kNone;
    Nanoseconds free_at = 0, next_event = kNever;
    // `left` is the total run time of the device's nodes that have not started.
    Nanoseconds sends_until = 0, receives_until = 0, left = 0;
    std::int16_t nodes_left = 0;
    bool dirty = true;
  };
  struct Sent {  // an output that was sent to another device
    Nanoseconds start = kNever, arrival = kNever;
    Bytes bytes = 0;
  };

  bool try_start(DeviceIndex device);  // returns false if the caller must first choose a node
  void end(DeviceIndex device);
  void send(NodeIndex node, DeviceIndex to, EdgeIndex slowest, Bytes bytes);
  // Returns when all inputs of the node have arrived; kNever while a producer runs.
  Nanoseconds inputs_at(NodeIndex node) const;
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
