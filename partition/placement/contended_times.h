// Start times of a schedule whose transfers depend on each other, recomputed from where a change
// can first be felt: under contention, or where a producer sends each device the largest of several
// tensors.
//
// Under contention every transfer takes the links of both ends in the order in which producers end,
// so a change shifts all that comes after it and nothing that came before: times are kept up to the
// change and followed event by event from there, by the simulator's own rules. Snapshots of the few
// numbers that a device has make any point one to go on from.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "partition/simulation/simulator.h"

namespace convoy::partition {

class ContendedTimes {
 public:
  using Orders = std::vector<std::vector<NodeIndex>>;

  // Both must outlive it; `orders` may change between calls, and with it the devices.
  ContendedTimes(const CostModel& cost, const Orders& orders);

  Nanoseconds start(NodeIndex node) const { return times_[node].start; }
  Nanoseconds finish(NodeIndex node) const { return times_[node].finish; }
  // Of an edge between devices: when the transfer that carries its tensor begins and arrives.
  Nanoseconds sent(EdgeIndex edge) const { return transfer_[edge].start; }
  Nanoseconds arrival(EdgeIndex edge) const { return transfer_[edge].arrival; }
  // The edge whose transfer this edge's waited for at either end; kNone if it did not wait.
  EdgeIndex waited_for(EdgeIndex edge) const { return transfer_[edge].waited_for; }

  void set_device(NodeIndex node, DeviceIndex device);
  // Follows the orders from the first event that is not before `from`. Gives up, with times that
  // only undo() mends, once the makespan is bound to exceed `limit`. `bottom`: by node, its own and
  // all later run times on the longest path.
  bool follow(Nanoseconds from, Nanoseconds limit, std::span<const Nanoseconds> bottom);
  // The nodes that the last follow() or undo() gave times, by their ends.
  std::span<const NodeIndex> followed() const { return std::span(sequence_).subspan(kept_ended_); }
  // Back to the times before the last follow().
  void undo();

 private:
  struct DeviceState {
    Nanoseconds free_at = 0, next_event = 0, done = 0;  // done: run time of what has started
    Nanoseconds sends_until = 0, receives_until = 0;
    std::int32_t next = 0;  // in the device's order
    NodeIndex running = kNone;
    EdgeIndex last_sent = kNone, last_received = kNone;
    std::int32_t missing = 0;  // producers of the next node that have not ended
    bool dirty = true;
  };
  struct NodeTimes {
    Nanoseconds start = 0, finish = 0;
  };
  struct EdgeTimes {
    Nanoseconds start = 0, arrival = 0;
    EdgeIndex waited_for = kNone;
  };
  struct Snapshot {
    Nanoseconds time;    // of the last event before it
    std::int32_t ended;  // nodes, by then
  };

  void restore(Nanoseconds from);
  void snapshot(Nanoseconds time);
  void head_changed(DeviceIndex device);
  bool try_start(DeviceIndex device, Nanoseconds now, Nanoseconds limit, std::span<const Nanoseconds> bottom);
  void end(DeviceIndex device, Nanoseconds now);
  void send(NodeIndex node, DeviceIndex home, Nanoseconds now);
  bool ended(NodeIndex node) const { return position_[node] < ended_; }

  const CostModel& cost_;
  const TaskGraph& graph_;
  const Orders& orders_;
  const DeviceIndex devices_;
  const bool contention_;
  const std::int32_t every_;  // ends between two snapshots
  std::vector<DeviceIndex> device_of_;
  std::vector<NodeTimes> times_;
  std::vector<EdgeTimes> transfer_;
  std::vector<Nanoseconds> total_;      // run time of all nodes, by device
  std::vector<std::int32_t> position_;  // by node: the how manieth to end
  std::vector<NodeIndex> sequence_;     // nodes by that
  std::int32_t ended_ = 0;
  std::vector<DeviceState> device_;
  std::vector<Snapshot> snapshots_;
  std::vector<DeviceState> snapshot_devices_;  // a row of all devices for each snapshot
  std::vector<EdgeIndex> slowest_;             // scratch of send(), by device
  std::vector<DeviceIndex> receivers_;
  // What the last follow() wrote over.
  std::int32_t kept_ended_ = 0;
  std::size_t kept_snapshots_ = 0;
  std::vector<NodeIndex> old_sequence_;
  std::vector<NodeTimes> old_times_;
  std::vector<EdgeTimes> old_transfers_;
  std::vector<Snapshot> old_snapshots_;
  std::vector<DeviceState> old_snapshot_devices_;
};

}  // namespace convoy::partition
