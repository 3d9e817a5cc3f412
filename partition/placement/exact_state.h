// A partial schedule of a small graph. Whenever a device becomes free, the caller chooses its next
// node.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>

#include "partition/simulation/simulator.h"

namespace convoy::partition {

inline constexpr NodeIndex kMostExactNodes = 12;
inline constexpr DeviceIndex kMostExactDevices = 8;

// Computes the same times as the simulator, to the nanosecond. The object is small, because the
// search copies it at every choice.
class ExactState {
 public:
  static constexpr Nanoseconds kNever = std::numeric_limits<Nanoseconds>::max();

  ExactState(const CostModel& cost, std::span<const DeviceIndex> device_of);

  // Simulates until the caller must choose the next node of a device, and returns this device.
  // Returns kNone if all nodes have ended or none can start.
  DeviceIndex advance();
  void choose(DeviceIndex device, NodeIndex node) { device_[device].chosen = node; }
  // Returns whether the node may be chosen next on its device. It may if all its producers on this
  // device have started.
  bool selectable(NodeIndex node) const;
  bool ended() const { return ended_ == cost_->graph().node_count(); }
  Nanoseconds now() const { return now_; }
  // Returns a lower bound on the makespan that holds for all further choices.
  Nanoseconds bound() const;
  // Returns whether every device has stayed within its memory limit until now().
  bool within_limits() const;
  Nanoseconds finish(NodeIndex node) const { return finish_[node]; }
  // Returns how many nodes started before this one, which must have started. Nodes may start at the
  // same time if they have no duration; this number tells their order.
  NodeIndex turn(NodeIndex node) const { return turn_[node]; }

 private:
  struct DeviceState {
    NodeIndex running = kNone, chosen = kNone;
    Nanoseconds free_at = 0, next_event = kNever;
    // `left` is the total run time of the device's nodes that have not started yet.
    Nanoseconds sends_until = 0, receives_until = 0, left = 0;
    std::int16_t nodes_left = 0;
    bool dirty = true;
  };
  struct Sent {  // an output that was sent to another device
    Nanoseconds start = kNever, arrival = kNever;
    Bytes bytes = 0;
  };

  bool try_start(DeviceIndex device);  // returns false if the caller must choose a node first
  void end(DeviceIndex device);
  void send(NodeIndex node, DeviceIndex to, EdgeIndex slowest, Bytes bytes);
  // Returns when all inputs of the node have arrived; kNever if a producer has not ended.
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
