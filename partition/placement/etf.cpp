// Earliest task first (baselines.h). Heaps of ready nodes replace the published scan over all pairs
// of node and device.
#include <algorithm>
#include <queue>

#include "partition/placement/baselines.h"
#include "partition/simulation/simulator.h"

namespace convoy::partition {
namespace {

constexpr Nanoseconds kNever = std::numeric_limits<Nanoseconds>::max();

// Nodes whose producers are all placed. Nodes whose inputs have arrived come first, ordered by
// bottom level (longest path to the end). The others are ordered by the arrival of their inputs.
class Candidates {
 public:
  void add(NodeIndex node, Nanoseconds arrival) { arriving_.emplace(arrival, node); }

  // Returns the first node for which `keep` is true, and the earliest time at which it can start if
  // the device is free from `free` on. Removes the nodes before it. Returns kNone if there is no
  // such node. `free` must not decrease from call to call.
  template <typename Level, typename Keep>
  std::pair<Nanoseconds, NodeIndex> first(Nanoseconds free, const Level& level, const Keep& keep) {
    for (;;) {
      while (!arriving_.empty() && arriving_.top().first <= free) {
        const NodeIndex node = arriving_.top().second;
        arriving_.pop();
        ready_.emplace(level(node), node);
      }
      if (!ready_.empty()) {
        if (keep(ready_.top().second)) return {free, ready_.top().second};
        ready_.pop();
      } else if (!arriving_.empty()) {
        if (keep(arriving_.top().second)) return arriving_.top();
        arriving_.pop();
      } else {
        return {kNever, kNone};
      }
    }
  }

 private:
  using Entry = std::pair<Nanoseconds, NodeIndex>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> arriving_;
  std::priority_queue<Entry> ready_;
};

class Etf {
 public:
  Etf(const CostModel& cost, const Units& units)
      : cost_(cost),
        graph_(cost.graph()),
        given_(units),
        constrained_(graph_.constrained()),
        own_(cost.device_count()),
        free_(cost.device_count(), 0),
        resident_(cost.device_count(), 0),
        node_(graph_.node_count()) {
    result_.devices = cost.device_count();
    result_.order.resize(result_.devices);
    const std::vector<Nanoseconds> level = bottom_levels(cost);
    for (NodeIndex node = 0; node < graph_.node_count(); ++node)
      node_[node] = {kNever, level[node], graph_.in_degree(node), kNone};
  }

  Placement run() {
    for (NodeIndex node = 0; node < graph_.node_count(); ++node)
      if (node_[node].waiting == 0) release(node);
    for (NodeIndex placed = 0; placed < graph_.node_count(); ++placed) place_next();
    result_.device_of.reserve(node_.size());
    for (const NodeState& state : node_) result_.device_of.push_back(state.device);
    return std::move(result_);
  }

 private:
  // The fields are in one struct, so that a visit of a node costs one cache miss.
  struct NodeState {
    Nanoseconds finish, level;
    EdgeIndex waiting;
    DeviceIndex device;  // kNone until the node is placed
  };

  // Returns the device to which the node's pin or group binds it; kNone if it is free.
  DeviceIndex fixed_device(NodeIndex node) const { return constrained_ ? given_.of_node(node) : kNone; }

  Nanoseconds arrival(NodeIndex node, DeviceIndex device) const {
    Nanoseconds latest = 0;
    for (const EdgeIndex edge : graph_.in_edges(node)) {
      const NodeState& producer = node_[graph_.source(edge)];
      latest = std::max(latest, producer.finish + cost_.transfer_time(edge, producer.device, device));
    }
    return latest;
  }

  // Adds the node to the queue of every device on which it may run. If all devices and all
  // links are equal, its inputs arrive at the same time on all devices that do not hold any of
  // them. These devices have one shared queue.
  void release(NodeIndex node) {
    const DeviceIndex fixed = fixed_device(node);
    if (fixed != kNone) return own_[fixed].add(node, arrival(node, fixed));
    if (!cost_.uniform()) {
      for (DeviceIndex device = 0; device < result_.devices; ++device)
        own_[device].add(node, arrival(node, device));
      return;
    }
    Nanoseconds anywhere = 0;
    std::uint64_t tried = 0;
    for (const EdgeIndex edge : graph_.in_edges(node)) {
      const NodeState& producer = node_[graph_.source(edge)];
      const DeviceIndex home = producer.device;
      anywhere = std::max(anywhere, producer.finish + cost_.transfer_time(edge));
      if (home < 64 && (tried >> home & 1u) != 0) continue;
      if (home < 64) tried |= std::uint64_t{1} << home;
      own_[home].add(node, arrival(node, home));
    }
    shared_.add(node, anywhere);
  }

  bool fits(NodeIndex node, DeviceIndex device) const {
    return resident_[device] <= cost_.machine().device(device).memory_limit - graph_.resident_bytes(node);
  }

  // Places the node that can start first, on the device where it can start then. Of several such
  // nodes, takes the one with the highest bottom level. If no device has enough memory, ignores the
  // limits, because a later repair may still find a solution.
  void place_next() {
    struct Choice {
      Nanoseconds start = kNever;
      NodeIndex node = kNone;
      DeviceIndex device = kNone;
    } best;
    const auto consider = [&](std::pair<Nanoseconds, NodeIndex> found, DeviceIndex device) {
      if (found.second == kNone) return;
      if (best.node == kNone || found.first < best.start ||
          (found.first == best.start && node_[found.second].level > node_[best.node].level))
        best = {found.first, found.second, device};
    };
    const auto level = [&](NodeIndex node) { return node_[node].level; };
    // Search the shared queue first. The search may move a node from it to the queue of one device.
    const auto idle = static_cast<DeviceIndex>(std::min_element(free_.begin(), free_.end()) - free_.begin());
    const auto anywhere =
        shared_.first(free_[idle], level, [&](NodeIndex node) { return stays_shared(node); });
    for (DeviceIndex device = 0; device < result_.devices; ++device)
      consider(own_[device].first(free_[device], level, [&](NodeIndex node) { return stays(node, device); }),
               device);
    consider(anywhere, idle);
    commit(best.node, choose_with_room(best.node, best.device));
  }

  bool stays(NodeIndex node, DeviceIndex device) const {
    const DeviceIndex fixed = fixed_device(node);
    return node_[node].device == kNone && (fixed == kNone || fixed == device);
  }
  // Returns whether the node still belongs in the shared queue. A node that is placed does not. If
  // the node's group was given a device, moves the node to the queue of this device and returns
  // false.
  bool stays_shared(NodeIndex node) {
    if (node_[node].device != kNone) return false;
    const DeviceIndex fixed = fixed_device(node);
    if (fixed == kNone) return true;
    own_[fixed].add(node, arrival(node, fixed));
    return false;
  }

  DeviceIndex choose_with_room(NodeIndex node, DeviceIndex wanted) const {
    if (fixed_device(node) != kNone || fits(node, wanted)) return wanted;
    DeviceIndex best = wanted;
    Nanoseconds earliest = kNever;
    for (DeviceIndex device = 0; device < result_.devices; ++device) {
      const Nanoseconds start = std::max(free_[device], arrival(node, device));
      if (fits(node, device) && start < earliest) earliest = start, best = device;
    }
    return best;
  }

  void commit(NodeIndex node, DeviceIndex device) {
    if (constrained_) given_.set_node(node, device);
    NodeState& state = node_[node];
    state.device = device;
    result_.order[device].push_back(node);
    resident_[device] += graph_.resident_bytes(node);
    const Nanoseconds start = std::max(free_[device], arrival(node, device));
    free_[device] = state.finish = start + cost_.run_time(node, device);
    for (const NodeIndex next : graph_.successors(node))
      if (--node_[next].waiting == 0) release(next);
  }

  const CostModel& cost_;
  const TaskGraph& graph_;
  UnitDevices given_;
  const bool constrained_;
  std::vector<Candidates> own_;
  Candidates shared_;
  std::vector<Nanoseconds> free_;
  std::vector<Bytes> resident_;
  std::vector<NodeState> node_;
  Placement result_;
};

}  // namespace

Placement place_by_etf(const CostModel& cost, const Units& units) { return Etf(cost, units).run(); }

}  // namespace convoy::partition
