// A schedule that a search can change a little. A change computes only those times again that it
// affects. The times may be inexact (kMostExact), so the simulator judges the final result.
//
// Every node has a key. Keys grow along every edge, and each device runs its nodes in the order of
// their keys, so no choice of devices can deadlock. A change gives nodes other devices, and may
// give a single node another key. Then starts are computed again in the order of keys, until
// nothing changes any more. If transfers depend on each other (contended_times.h), the events are
// replayed from the first one that the change can affect.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "partition/placement/contended_times.h"
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

  // A change on trial. The schedule shows it at once, and the destructor undoes it unless commit()
  // was called. A schedule has one Move at a time, and must outlive it.
  class [[nodiscard]] Move {
   public:
    Move(const Move&) = delete;
    Move& operator=(const Move&) = delete;
    ~Move() { roll_back(); }
    // Returns false if the makespan must exceed the limit. Then the schedule's times are incomplete
    // until the change is undone.
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
    Nanoseconds transfer;  // used if all links are equal
  };

  // Takes the devices of a simulated placement, and runs the nodes of each device in the order of
  // their simulated starts.
  ScheduleState(const CostModel& cost, std::span<const DeviceIndex> device_of, const Simulation& simulation);

  // Moves nodes to other devices and computes the times again. Gives up once the makespan is bound
  // to exceed `limit`.
  Move move(std::span<const Reassignment> nodes, Nanoseconds limit);
  // Moves one node as move() does, and may also change its place in the order, so that it starts at
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
  // Returns when the tensor of an edge would be on `device` if transfers were independent.
  Nanoseconds arrival(const InEdge& in, DeviceIndex device) const {
    return node_[in.producer].finish + transfer(in, device);
  }
  // Returns when all inputs of the node would be on `device` if nothing else changed.
  Nanoseconds arrival(NodeIndex node, DeviceIndex device) const;
  // Estimates the longest path through the node if it alone moved to `device`.
  Nanoseconds estimate(NodeIndex node, DeviceIndex device) const;
  // Returns the time from the node's end to the end of the schedule: the longest path over edges
  // and over the orders of devices and links. A Move on trial does not change it.
  Nanoseconds tail(NodeIndex node) const { return node_[node].tail; }

  // Returns the work done since the constructor, in units of work.h.
  std::int64_t work() const { return work_; }

 private:
  // One cache line, because a change reaches nodes all over the graph.
  struct alignas(64) NodeState {
    Key key;
    Nanoseconds start, finish;
    Nanoseconds tail;
    Nanoseconds bottom;  // longest path from the start to the end of the graph, without transfers
    DeviceIndex device;
    NodeIndex previous, next;  // neighbours on the device; kNone at the ends
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
  void remove_from_order(NodeIndex node);
  void choose_key(NodeIndex node, DeviceIndex device);
  void insert_into_order(NodeIndex node, DeviceIndex device);
  bool recompute(Nanoseconds limit);
  void undo_move();
  // Returns a lower bound, valid during a move, on the time from the node's start to the end of the
  // schedule.
  Nanoseconds least_rest(NodeIndex node, Nanoseconds run_time) const;
  Nanoseconds tail_of(NodeIndex node) const;
  void update_tails();

  std::vector<NodeIndex>::iterator place_of(NodeIndex node);
  void unlink(NodeIndex node);
  void link(NodeIndex node);
  // A queue holds the nodes whose times must be computed again. A pass visits them by ascending or
  // by descending key. Nodes of different devices can have equal keys; then the index decides.
  enum class Direction { kForward, kBackward };
  void queue(NodeIndex node, Direction direction = Direction::kForward);
  NodeIndex pop_queue();
  void queue_successors(NodeIndex node);
  void record(NodeIndex node, bool moved) {
    const NodeState& state = node_[node];
    log_.push_back({node, state.device, state.key, state.start, state.finish, moved});
  }
  // Returns the time from the producer's end to the arrival of its tensor on `device`.
  Nanoseconds transfer(const InEdge& in, DeviceIndex device) const {
    const DeviceIndex from = node_[in.producer].device;
    if (from == device) return 0;
    return same_links_ ? in.transfer : cost_.transfer_time(in.edge, from, device);
  }
  Nanoseconds length(NodeIndex node) const { return node_[node].finish - node_[node].start; }
  // Returns the longest path from the node's end to the end of the schedule that starts with an
  // out-edge of the node, if the node were on `device`.
  Nanoseconds tail_of_consumers(NodeIndex node, DeviceIndex device) const;
  Nanoseconds earliest_start(NodeIndex node) const;

  // Called only if transfers depend on each other (schedule_contention.cpp).
  void replay_from_inputs_of(NodeIndex node);
  bool replay(Nanoseconds limit);
  void copy_replayed_times();
  void commit_replay();
  void undo_replay();

  const CostModel& cost_;
  const TaskGraph& graph_;
  // Whether every node takes the same time on all devices, so that `bottom` is right on each.
  const bool same_speeds_;
  const bool same_links_;
  std::vector<NodeState> node_;
  std::vector<EdgeIndex> in_begin_;  // index of each node's first in-edge in in_edge_
  std::vector<InEdge> in_edge_;
  std::vector<std::vector<NodeIndex>> order_;  // nodes of each device by ascending key
  std::vector<Undo> log_;                      // what the current move has changed
  std::vector<std::pair<Key, NodeIndex>> heap_;
  std::vector<NodeIndex> tails_to_update_;  // nodes at which the update of tails begins
  // The largest key of a moved node, before or after the current move. The tails of nodes with
  // larger keys are still right.
  Key moved_until_ = 0;
  std::uint32_t pass_ = 0;  // number of the current pass over the queue
  std::int64_t work_ = 0;
  // Set only if transfers depend on each other.
  std::optional<ContendedTimes> contended_;
  Nanoseconds replay_from_ = 0;  // the current move changes no event before this time
  // Nodes that start after this time keep their devices and places in the current move.
  Nanoseconds replay_until_ = 0;
  bool replayed_ = false;         // whether the current move has called contended_->replay()
  bool finished_replay_ = false;  // whether contended_->replay() computed all times
};

}  // namespace convoy::partition
