// Computes the times of a schedule in which one transfer can change the times of others. This
// happens for two reasons. Under contention, transfers wait for links. And if a producer has
// several tensors for one device, only the largest is sent.
//
// A change of the schedule affects only later events. So earlier times are kept, and later events
// are simulated again (replayed) with the simulator's rules. Snapshots of the devices' states allow
// a replay to start at any time.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "partition/simulation/simulator.h"

namespace convoy::partition {

class ContendedTimes {
 public:
  using Orders = std::vector<std::vector<NodeIndex>>;

  // Both arguments must live longer than this object. The caller may change `orders` between calls,
  // but must call set_device() for each node that moves to another device.
  ContendedTimes(const CostModel& cost, const Orders& orders);

  Nanoseconds start(NodeIndex node) const { return times_[node].start; }
  Nanoseconds finish(NodeIndex node) const { return times_[node].finish; }
  // Returns the time at which the tensor of an edge is on the consumer's device.
  Nanoseconds arrival(EdgeIndex edge) const { return arrival_[slot_[edge]]; }
  // Returns the time at which the transfer of an edge between two devices begins.
  Nanoseconds sent(EdgeIndex edge) const { return transfer_[edge].start; }
  // Returns the edge whose transfer delayed this edge's transfer at its sender or receiver; kNone
  // if the transfer did not wait.
  EdgeIndex waited_for(EdgeIndex edge) const { return transfer_[edge].waited_for; }
  // Returns the time from the start of a node to the end of the schedule at the last commit(),
  // assuming that no transfer overtakes another.
  Nanoseconds rest(NodeIndex node) const { return rest_[node]; }

  void set_device(NodeIndex node, DeviceIndex device);
  // Simulates all events at `from` or later again. Stops and returns false in three cases:
  //   - The makespan certainly exceeds `limit`.
  //   - The makespan probably exceeds `limit`: a node that so far started after `unchanged_from`
  //     has a new start, and this start plus rest() of the node exceeds the limit.
  //   - The devices are in a deadlock.
  // Call commit() or undo() afterwards.
  bool replay(Nanoseconds from, Nanoseconds unchanged_from, Nanoseconds limit);
  // Returns the nodes whose times the last replay() wrote, in the order of their ends.
  std::span<const NodeIndex> replayed() const { return new_sequence_; }
  // Keeps the times of the last replay(), which must have returned true.
  void commit();
  // Restores the times before the last replay().
  void undo();

 private:
  struct DeviceState {
    // `done` is the total run time of all nodes that have started on the device.
    Nanoseconds free_at = 0, next_event = 0, done = 0;
    Nanoseconds sends_until = 0, receives_until = 0;
    Nanoseconds ready = 0;     // when the inputs of `head` that were sent so far arrive
    std::int32_t next = 0;     // index of the next node in the device's order
    std::int32_t missing = 0;  // producers of `head` that have not ended
    NodeIndex running = kNone;
    NodeIndex head = kNone;  // the next node of the order, if no node is running
    EdgeIndex last_sent = kNone, last_received = kNone;
    bool dirty = true;
  };
  struct NodeTimes {
    Nanoseconds start = 0, finish = 0;
  };
  struct EdgeTimes {
    Nanoseconds start = 0;
    EdgeIndex waited_for = kNone;
  };
  // Times that the current replay() has overwritten, for undo().
  struct OldTimes {
    NodeIndex node;
    NodeTimes times;
  };
  struct OldTransfer {
    Nanoseconds arrival;
    EdgeTimes times;
  };
  struct Snapshot {
    Nanoseconds time;    // time of the last event before the snapshot
    std::int32_t ended;  // number of nodes that have ended
  };

  void restore(Nanoseconds from);
  void snapshot(Nanoseconds time);
  void find_head(DeviceIndex device);
  bool try_start(DeviceIndex device, Nanoseconds now);
  void end(DeviceIndex device, Nanoseconds now);
  void send(NodeIndex node, DeviceIndex home, Nanoseconds now);
  void find_slowest_edges(NodeIndex node, DeviceIndex home);
  void deliver(NodeIndex node, DeviceIndex home);
  bool ended(NodeIndex node) const {
    return position_[node] < kept_ended_ || ended_in_replay_[node] == replay_;
  }
  void compute_rest();

  const CostModel& cost_;
  const TaskGraph& graph_;
  const Orders& orders_;
  const DeviceIndex devices_;
  const bool contention_;
  const std::int32_t every_;  // number of node ends between two snapshots
  std::vector<DeviceIndex> device_of_;
  std::vector<NodeTimes> times_;
  std::vector<EdgeTimes> transfer_;
  std::vector<EdgeIndex> in_begin_;  // number (slot) of each node's first in-edge
  // The slot of each edge. Slots number the edges by consumer, so that the in-edges of a node are
  // adjacent in memory.
  std::vector<EdgeIndex> slot_;
  std::vector<NodeIndex> producer_;     // producer of the edge in each slot
  std::vector<Nanoseconds> arrival_;    // arrival of the tensor of the edge in each slot
  std::vector<Nanoseconds> total_;      // run time of all nodes of each device
  std::vector<std::int32_t> position_;  // the index of each node in sequence_
  std::vector<NodeIndex> sequence_;     // the nodes in the order of their ends
  std::vector<DeviceState> device_;
  std::vector<Snapshot> snapshots_;
  std::vector<DeviceState> snapshot_devices_;  // states of all devices, one snapshot after the other
  struct Sent {
    EdgeTimes times;
    Nanoseconds arrival = 0;
  };
  std::vector<EdgeIndex> slowest_;  // used by send(): the slowest edge to each device
  std::vector<Sent> sent_;          // used by send(): the transfer to each device
  std::vector<DeviceIndex> receivers_;
  std::vector<Nanoseconds> rest_;
  // The state of the current replay(). new_… holds what it has computed, old_… what it has
  // overwritten.
  Nanoseconds unchanged_from_ = 0, limit_ = 0;
  std::int32_t replay_ = 0, kept_ended_ = 0;
  std::size_t kept_snapshots_ = 0;
  // For each node, the number of the last replay in which it ended.
  std::vector<std::int32_t> ended_in_replay_;
  std::vector<NodeIndex> new_sequence_;
  std::vector<Snapshot> new_snapshots_;
  std::vector<DeviceState> new_snapshot_devices_;
  std::vector<OldTimes> old_times_;
  // The old transfers of the nodes in new_sequence_, for undo().
  std::vector<OldTransfer> old_transfers_;
};

}  // namespace convoy::partition
