// A schedule that a search changes step by step. After a change, only the times that it affects are
// computed again. The times may be inexact (kMostExact), so the simulator judges the final result.
//
// Every node has a key. Keys grow along every edge, and each device runs its nodes in the order of
// their keys. So no choice of devices can lead to a deadlock. A change gives nodes other devices,
// and may give a single node another key. Then starts are computed again in the order of keys until
// nothing changes. If transfers depend on each other (contended_times.h), the events are replayed
// instead, from the first one that the change can affect.
#pragma once

#include <cstdlib>
#include <optional>
#include <span>
#include <vector>

#include "partition/placement/contended_times.h"
#include "partition/placement/node_queue.h"
#include "partition/placement/work.h"
#include "partition/simulation/simulator.h"

namespace convoy::partition {

struct Reassignment {
  NodeIndex node;
  DeviceIndex device;
};

class ScheduleState {
 public:
  using Key = std::int64_t;

  // A tentative change. The schedule shows it at once, and the destructor undoes it unless commit()
  // was called. A schedule has one Move at a time. The schedule must live longer than the Move.
  class [[nodiscard]] Move {
   public:
    Move(const Move&) = delete;
    Move& operator=(const Move&) = delete;
    ~Move() { roll_back(); }
    // Returns false if the times were not computed to the end, because the makespan would exceed
    // the limit. The schedule's times are then incomplete until the change is undone.
    bool finished() const { return finished_; }
    // Keeps the change. Requires finished().
    void commit();
    // Undoes the change now.
    void roll_back();

   private:
    friend class ScheduleState;
    Move(ScheduleState& state, bool finished) : state_(&state), finished_(finished) {}
    ScheduleState* state_;  // null after commit() and roll_back()
    bool finished_;
  };

  struct InEdge {
    NodeIndex producer;
    EdgeIndex edge;
    Nanoseconds transfer;  // transfer time if all links are equal
  };

  // Takes the devices from a simulated placement. The order of each device is that of the simulated
  // starts.
  ScheduleState(const CostModel& cost, std::span<const DeviceIndex> device_of, const Simulation& simulation);

  // Moves nodes to other devices and computes the times again. Stops early if it finds that the
  // makespan would exceed `limit`. If transfers depend on each other, this may be an estimate
  // (ContendedTimes::replay()).
  Move move(std::span<const Reassignment> nodes, Nanoseconds limit);
  // Moves one node like move(). May also change its position in the order, so that it starts at
  // about the time when its inputs arrive.
  Move move_in_time(NodeIndex node, DeviceIndex device, Nanoseconds limit);

  const CostModel& cost() const { return cost_; }
  Nanoseconds makespan() const;
  DeviceIndex device_of(NodeIndex node) const { return node_[node].device; }
  Nanoseconds start(NodeIndex node) const { return node_[node].start; }
  Nanoseconds finish(NodeIndex node) const { return node_[node].finish; }
  NodeIndex previous_on_device(NodeIndex node) const { return node_[node].previous; }
  NodeIndex next_on_device(NodeIndex node) const { return node_[node].next; }
  // Returns the order of nodes on each device.
  std::span<const std::vector<NodeIndex>> orders() const { return order_; }
  Placement placement() const;
  std::vector<DeviceIndex> devices() const;

  std::span<const InEdge> in_edges(NodeIndex node) const {
    return {in_edge_.data() + in_begin_[node],
            static_cast<std::size_t>(in_begin_[node + 1] - in_begin_[node])};
  }
  // Returns the times of transfers between devices, or null if transfers are independent.
  const ContendedTimes* contended() const { return contended_ ? &*contended_ : nullptr; }
  // Returns when the tensor of an edge would arrive on `device` if transfers were independent.
  Nanoseconds arrival(const InEdge& in, DeviceIndex device) const {
    return node_[in.producer].finish + transfer(in, device);
  }
  // Returns when all inputs of the node would have arrived on `device` if nothing else changed.
  Nanoseconds arrival(NodeIndex node, DeviceIndex device) const;
  // Estimates the length of the longest path through the node if only this node moved to `device`.
  Nanoseconds estimate(NodeIndex node, DeviceIndex device) const;
  // Returns the time from the end of the node to the end of the schedule. This is the longest path
  // over edges and over the orders of devices and links. A tentative Move does not change it.
  Nanoseconds tail(NodeIndex node) const { return node_[node].tail; }

  // Returns how much computation this object has done so far, as a sum of the costs in work.h. One
  // is about a nanosecond. Searches are limited by it and not by time, so that their results
  // repeat.
  std::int64_t work() const { return work_; }

 private:
  // A change visits nodes all over the graph. A node fills exactly one cache line, so that each
  // visit costs only one cache miss.
  struct alignas(64) NodeState {
    Key key;
    Nanoseconds start, finish;
    Nanoseconds tail;
    Nanoseconds bottom;  // longest path from the node's start to the graph's end, without transfers
    DeviceIndex device;
    NodeIndex previous, next;  // nodes before and after it on its device; kNone at the ends
    std::uint32_t queued;      // number of the last pass in which the node was queued
  };
  struct Undo {
    NodeIndex node;
    DeviceIndex device;
    Key key;
    Nanoseconds start, finish;
    bool moved;
  };
  static constexpr Key kSpacing = Key{1} << 20;

  void begin_move();
  bool loads_are_within(std::span<const Reassignment> nodes, Nanoseconds limit);
  void remove_from_order(NodeIndex node);
  void choose_key(NodeIndex node, DeviceIndex device);
  void insert_into_order(NodeIndex node, DeviceIndex device);
  void set_device(NodeIndex node, DeviceIndex device);
  bool recompute(Nanoseconds limit);
  void undo_move();
  // Returns a lower bound on the time from the node's start to the end of the schedule. It is valid
  // during a move.
  Nanoseconds least_rest(NodeIndex node, Nanoseconds run_time) const;
  Nanoseconds tail_of(NodeIndex node) const;
  void update_tails();

  std::vector<NodeIndex>::iterator place_of(NodeIndex node);
  void unlink(NodeIndex node);
  void link(NodeIndex node);
  // The queue holds the nodes whose times must be computed again. A pass takes them out by
  // ascending or descending key. Nodes on different devices can have equal keys; these are ordered
  // by index.
  enum class Direction { kForward, kBackward };
  void queue(NodeIndex node, Direction direction = Direction::kForward);
  NodeIndex take_from_queue() { return std::abs(queue_.take().second); }
  void queue_successors(NodeIndex node);
  void record(NodeIndex node, bool moved) {
    const NodeState& state = node_[node];
    log_.push_back({node, state.device, state.key, state.start, state.finish, moved});
  }
  // Returns the time from the end of the producer to the arrival of its tensor on `device`.
  Nanoseconds transfer(const InEdge& in, DeviceIndex device) const {
    const DeviceIndex from = node_[in.producer].device;
    if (from == device) return 0;
    return same_links_ ? in.transfer : cost_.transfer_time(in.edge, from, device);
  }
  Nanoseconds length(NodeIndex node) const { return node_[node].finish - node_[node].start; }
  // Considers the paths from the node's end to the end of the schedule whose first step is an
  // out-edge of the node. Returns the length of the longest one if the node is on `device`.
  Nanoseconds tail_of_consumers(NodeIndex node, DeviceIndex device) const;
  Nanoseconds earliest_start(NodeIndex node) const;

  // The following functions are for transfers that depend on each other (schedule_contention.cpp).
  void replay_from_inputs_of(NodeIndex node);
  bool replay(Nanoseconds limit);
  void copy_replayed_times();
  void commit_replay();
  void undo_replay();

  const CostModel& cost_;
  const TaskGraph& graph_;
  // Whether every node takes the same time on all devices. NodeState::bottom is then valid on each
  // device.
  const bool same_speeds_;
  const bool same_links_;
  std::vector<NodeState> node_;
  std::vector<EdgeIndex> in_begin_;  // index of each node's first in-edge in in_edge_
  std::vector<InEdge> in_edge_;
  std::vector<std::vector<NodeIndex>> order_;  // nodes of each device by ascending key
  std::vector<Nanoseconds> load_;              // run time of all nodes of each device
  std::vector<Undo> log_;                      // the values that the current move has changed
  NodeQueue queue_;
  std::vector<Reassignment> left_;          // nodes of the current move, with the devices that they leave
  std::vector<NodeIndex> tails_to_update_;  // nodes at which the update of tails begins
  // The largest key of any moved node, before or after the current move. Tails of nodes with larger
  // keys are still valid.
  Key moved_until_ = 0;
  std::uint32_t pass_ = 0;  // number of the current pass over the queue
  std::int64_t work_ = 0;
  // Set only if transfers depend on each other.
  std::optional<ContendedTimes> contended_;
  Nanoseconds replay_from_ = 0;  // events before this time are not changed by the current move
  // Nodes that start after this time keep their device and position in the current move.
  Nanoseconds replay_until_ = 0;
  bool replayed_ = false;         // whether the current move has called contended_->replay()
  bool finished_replay_ = false;  // whether contended_->replay() computed all times
};

}  // namespace convoy::partition
