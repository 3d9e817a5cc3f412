// The times of a schedule whose transfers depend on each other. They do so under contention, and if
// a producer sends a device several tensors, because only the largest is sent.
//
// Under contention a transfer uses the links of both ends, in the order in which producers end. So
// a change affects only later events: earlier times are kept, and later events are simulated again
// by the simulator's rules. Snapshots of the few numbers of each device allow a restart at any
// time.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "partition/simulation/simulator.h"

namespace convoy::partition {

class ContendedTimes {
 public:
  using Orders = std::vector<std::vector<NodeIndex>>;

  // Both arguments must outlive this object. `orders` may change between calls, but set_device()
  // must be called for each node that moves to another device.
  ContendedTimes(const CostModel& cost, const Orders& orders);

  Nanoseconds start(NodeIndex node) const { return times_[node].start; }
  Nanoseconds finish(NodeIndex node) const { return times_[node].finish; }
  // For an edge between devices: the times at which the transfer of its tensor begins and arrives.
  Nanoseconds sent(EdgeIndex edge) const { return transfer_[edge].start; }
  Nanoseconds arrival(EdgeIndex edge) const { return transfer_[edge].arrival; }
  // The edge whose transfer delayed this edge's transfer at either end; kNone if it did not wait.
  EdgeIndex waited_for(EdgeIndex edge) const { return transfer_[edge].waited_for; }

  void set_device(NodeIndex node, DeviceIndex device);
  // Simulates the orders from the first event that is not before `from`. Returns false once the
  // makespan is bound to exceed `limit`; the times are then invalid until undo(). `bottom`: by
  // node, the run times of the node and of all later nodes on the longest path.
  bool replay(Nanoseconds from, Nanoseconds limit, std::span<const Nanoseconds> bottom);
  // The nodes whose times the last replay() or undo() wrote, sorted by their ends.
  std::span<const NodeIndex> replayed() const { return std::span(sequence_).subspan(kept_ended_); }
  // Restores the times before the last replay().
  void undo();

 private:
  struct DeviceState {
    Nanoseconds free_at = 0, next_event = 0, done = 0;  // done: run time of the nodes that have started
    Nanoseconds sends_until = 0, receives_until = 0;
    std::int32_t next = 0;  // index in the device's order
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
    Nanoseconds time;    // time of the last event before the snapshot
    std::int32_t ended;  // number of nodes that have ended
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
  const std::int32_t every_;  // number of node ends between two snapshots
  std::vector<DeviceIndex> device_of_;
  std::vector<NodeTimes> times_;
  std::vector<EdgeTimes> transfer_;
  std::vector<Nanoseconds> total_;      // run time of all nodes, by device
  std::vector<std::int32_t> position_;  // by node: its index in sequence_
  std::vector<NodeIndex> sequence_;     // the nodes in the order of their ends
  std::int32_t ended_ = 0;
  std::vector<DeviceState> device_;
  std::vector<Snapshot> snapshots_;
  std::vector<DeviceState> snapshot_devices_;  // a row of all devices for each snapshot
  std::vector<EdgeIndex> slowest_;             // scratch of send(), by device
  std::vector<DeviceIndex> receivers_;
  // The data that the last replay() overwrote.
  std::int32_t kept_ended_ = 0;
  std::size_t kept_snapshots_ = 0;
  std::vector<NodeIndex> old_sequence_;
  std::vector<NodeTimes> old_times_;
  std::vector<EdgeTimes> old_transfers_;
  std::vector<Snapshot> old_snapshots_;
  std::vector<DeviceState> old_snapshot_devices_;
};

}  // namespace convoy::partition
