// A schedule that can be changed a little and re-simulated at the cost of what the change reaches.
//
// Every node has a key; keys grow along every edge and along every device's order, so a device's order is its
// nodes by key and any choice of devices is free of deadlock. A move gives nodes another device (and may give
// a single node another key); starts are then recomputed in the order of keys, stopping where nothing
// changed. Transfers are those of the simulator without contention; the simulator remains the judge of the
// result.
#pragma once

#include <span>
#include <vector>

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
  DeviceIndex device_of(NodeIndex node) const { return device_[node]; }
  Nanoseconds start(NodeIndex node) const { return start_[node]; }
  Nanoseconds finish(NodeIndex node) const { return finish_[node]; }
  NodeIndex previous_on_device(NodeIndex node) const { return previous_[node]; }
  NodeIndex next_on_device(NodeIndex node) const { return next_[node]; }
  Placement placement() const;
  std::span<const DeviceIndex> devices() const { return device_; }

  // When the node's inputs would be on `device` with everything else as it is.
  Nanoseconds arrival(NodeIndex node, DeviceIndex device) const;
  // The longest path through the node if it alone moved to `device`, by the current starts and the last
  // tails.
  Nanoseconds estimate(NodeIndex node, DeviceIndex device) const;

  // Moves nodes and re-simulates. Gives up once the makespan is bound to exceed `limit`, leaving an
  // unfinished state that only rollback() mends. Returns whether it finished; then commit() or rollback()
  // decides.
  bool move(std::span<const Reassignment> nodes, Nanoseconds limit);
  // The same for one node that may also change its place in the order, to start about when its inputs arrive.
  bool move_in_time(NodeIndex node, DeviceIndex device, Nanoseconds limit);
  void commit() { log_.clear(); }
  void rollback();

  // Longest path from each node's end to the end of the schedule, over edges and device orders.
  void compute_tails();
  Nanoseconds tail(NodeIndex node) const { return tail_[node]; }

  // A longest chain of nodes from time zero to the makespan, each starting when the one before allows. Of
  // several causes a producer is taken before the device's previous node, or after it.
  void critical_path(std::vector<NodeIndex>& path, bool producers_first = true) const;

  std::int64_t nodes_recomputed() const { return recomputed_; }

 private:
  using Key = std::int64_t;
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
  void record(NodeIndex node, bool moved) {
    log_.push_back({node, device_[node], key_[node], start_[node], finish_[node], moved});
  }
  Nanoseconds earliest_start(NodeIndex node) const;
  void relocate(NodeIndex node, DeviceIndex device);
  NodeIndex tight_producer(NodeIndex node) const;
  void choose_key(NodeIndex node, DeviceIndex device);
  void begin_move();

  const CostModel& cost_;
  const TaskGraph& graph_;
  const bool prunable_;  // bottom_ holds on every device
  std::vector<DeviceIndex> device_;
  std::vector<Key> key_;
  std::vector<Nanoseconds> start_, finish_, tail_;
  std::vector<Nanoseconds> bottom_;  // without communication: what a start can never beat
  std::vector<NodeIndex> previous_, next_;
  std::vector<std::vector<NodeIndex>> order_;  // by device, ascending key
  std::vector<Undo> log_;
  std::vector<std::pair<Key, NodeIndex>> heap_;
  std::vector<std::uint32_t> queued_;  // the round in which the node was queued last
  std::uint32_t round_ = 0;
  std::int64_t recomputed_ = 0;
};

}  // namespace convoy::partition
