// A schedule that can be changed a little and re-simulated at the cost of what the change reaches.
//
// Every node has a key; keys grow along every edge and along every device's order, so a device's
// order is its nodes by key and any choice of devices is free of deadlock. A move gives nodes
// another device (and may give a single node another key); starts are then recomputed in the order
// of keys, stopping where nothing changed; under contention they are followed from the first event
// that the change can touch (contended_times.h). The simulator remains the judge of the result.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "partition/placement/contended_times.h"
#include "partition/placement/live_bytes.h"
#include "partition/simulation/simulator.h"

namespace convoy::partition {

struct Reassignment {
  NodeIndex node;
  DeviceIndex device;
};

class ScheduleState {
 public:
  // Takes devices and the order of starts of a simulated placement.
  ScheduleState(const CostModel& cost, std::span<const DeviceIndex> device_of, const Simulation& simulation);

  Nanoseconds makespan() const;
  DeviceIndex device_of(NodeIndex node) const { return node_[node].device; }
  Nanoseconds start(NodeIndex node) const { return node_[node].start; }
  Nanoseconds finish(NodeIndex node) const { return node_[node].finish; }
  NodeIndex previous_on_device(NodeIndex node) const { return node_[node].previous; }
  NodeIndex next_on_device(NodeIndex node) const { return node_[node].next; }
  // By how many bytes all devices together exceed their limits; more than `most` may be too little.
  // A pass over the graph.
  Bytes overflow(Bytes most = kUnlimited) const;
  // Lists the nodes that keep bytes on the device that exceeded its limit most at the last
  // overflow(), at the time of its peak. May list a node twice, and lists none if no limit was
  // exceeded.
  void held_at_worst(std::vector<NodeIndex>& nodes) const;
  Placement placement() const;
  std::vector<DeviceIndex> devices() const;

  // When the node's inputs would be on `device` with everything else as it is.
  Nanoseconds arrival(NodeIndex node, DeviceIndex device) const;
  // The longest path through the node if it alone moved to `device`, by the current starts and the
  // last tails.
  Nanoseconds estimate(NodeIndex node, DeviceIndex device) const;

  // Moves nodes and re-simulates. Gives up once the makespan is bound to exceed `limit`, leaving an
  // unfinished state that only rollback() mends. Returns whether it finished; then commit() or
  // rollback() decides.
  bool move(std::span<const Reassignment> nodes, Nanoseconds limit);
  // The same for one node that may also change its place in the order, to start about when its
  // inputs arrive.
  bool move_in_time(NodeIndex node, DeviceIndex device, Nanoseconds limit);
  void commit() {
    log_.clear();
    followed_ = false;
  }
  void rollback();

  // Longest path from each node's end to the end of the schedule, over edges and device orders.
  void compute_tails();
  Nanoseconds tail(NodeIndex node) const { return node_[node].tail; }

  // A longest chain of nodes from time zero to the makespan, each starting when the one before
  // allows. Of several causes a producer is taken before the device's previous node, or after it.
  // Under contention a transfer may wait for others: then both ends of those are in it, too.
  void critical_path(std::vector<NodeIndex>& path, bool producers_first = true) const;

  std::int64_t nodes_recomputed() const { return recomputed_; }

 private:
  using Key = std::int64_t;
  // One cache line: a change reaches nodes all over a graph, and what it needs of each is then one
  // miss.
  struct alignas(64) NodeState {
    Key key;
    Nanoseconds start, finish;
    Nanoseconds tail;
    Nanoseconds bottom;  // without communication: what a start can never beat
    DeviceIndex device;
    NodeIndex previous, next;  // on the device
    std::uint32_t queued;      // the round in which the node was queued last
  };
  struct InEdge {
    NodeIndex producer;
    EdgeIndex edge;
    Nanoseconds transfer;  // with equal links
  };
  struct Undo {
    NodeIndex node;
    DeviceIndex device;
    Key key;
    Nanoseconds start, finish;
    bool moved;
  };
  static constexpr Key kSpacing = Key{1} << 20;

  std::vector<NodeIndex>::iterator place_of(NodeIndex node);
  void unlink(NodeIndex node);
  void link(NodeIndex node);
  void touch(NodeIndex node);
  void touch_successors(NodeIndex node);
  bool propagate(Nanoseconds limit);
  bool follow(Nanoseconds limit);
  void copy_followed_times();
  void felt_from(NodeIndex node);
  void record(NodeIndex node, bool moved) {
    const NodeState& state = node_[node];
    log_.push_back({node, state.device, state.key, state.start, state.finish, moved});
  }
  std::span<const InEdge> in_edges(NodeIndex node) const {
    return {in_edge_.data() + in_begin_[node],
            static_cast<std::size_t>(in_begin_[node + 1] - in_begin_[node])};
  }
  // Returns how long `consumer` would wait after the end of the producer if it were on `device`.
  Nanoseconds transfer(const InEdge& in, DeviceIndex device) const {
    const DeviceIndex from = node_[in.producer].device;
    if (from == device) return 0;
    return same_links_ ? in.transfer : cost_.transfer_time(in.edge, from, device);
  }
  Nanoseconds length(NodeIndex node) const { return node_[node].finish - node_[node].start; }
  Nanoseconds longest_behind(NodeIndex node, DeviceIndex device) const;
  Nanoseconds earliest_start(NodeIndex node) const;
  void leave(NodeIndex node);
  void add_outputs(NodeIndex node) const;
  void relocate(NodeIndex node, DeviceIndex device);
  NodeIndex tight_producer(NodeIndex node) const;
  void choose_key(NodeIndex node, DeviceIndex device);
  void begin_move();

  void waiting_path(NodeIndex node, std::vector<NodeIndex>& path) const;

  const CostModel& cost_;
  const TaskGraph& graph_;
  const bool prunable_;  // the bottom levels hold on every device
  const bool same_links_;
  std::vector<NodeState> node_;
  std::vector<EdgeIndex> in_begin_;  // by node, into in_edge_
  std::vector<InEdge> in_edge_;
  std::vector<std::vector<NodeIndex>> order_;  // by device, ascending key
  std::vector<Undo> log_;
  std::vector<std::pair<Key, NodeIndex>> heap_;
  std::uint32_t round_ = 0;
  std::int64_t recomputed_ = 0;
  // Under contention.
  std::optional<ContendedTimes> contended_;
  std::vector<Nanoseconds> bottom_;
  Nanoseconds from_ = 0;   // no event before it can differ after the move
  bool followed_ = false;  // since the last commit or rollback
  // Scratch of overflow().
  struct Copy {
    Bytes bytes = -1;
    EdgeIndex edge = kNone;
    Nanoseconds start = 0, arrival = 0, until = 0;
  };
  mutable std::optional<LiveBytes> live_;
  struct Worst {
    DeviceIndex device = kNone;
    Nanoseconds when = 0;
    Bytes excess = 0;
  };
  mutable Worst worst_;
  mutable std::vector<Copy> copies_;
  mutable std::vector<DeviceIndex> receivers_;
};

}  // namespace convoy::partition
