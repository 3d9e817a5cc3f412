// The event loop of the simulator. memory_use.cpp computes the memory over time.
#include "partition/simulation/simulator.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <queue>
#include <stdexcept>
#include <utility>

#include "partition/simulation/memory_use.h"

namespace convoy::partition {
namespace {

constexpr Nanoseconds kNever = std::numeric_limits<Nanoseconds>::max();

using TimedNode = std::pair<Nanoseconds, NodeIndex>;
struct Later {
  bool operator()(const TimedNode& a, const TimedNode& b) const { return a > b; }
};
// Orders nodes by priority, largest first. Of equal nodes, the one with the lowest index comes
// first.
struct LessUrgent {
  bool operator()(const TimedNode& a, const TimedNode& b) const {
    return a.first != b.first ? a.first < b.first : a.second > b.second;
  }
};
using ArrivalQueue = std::priority_queue<TimedNode, std::vector<TimedNode>, Later>;
using ReadyQueue = std::priority_queue<TimedNode, std::vector<TimedNode>, LessUrgent>;

class EventLoop {
 public:
  EventLoop(const CostModel& cost, std::span<const DeviceIndex> device_of,
            std::span<const Nanoseconds> priority, const std::vector<std::vector<NodeIndex>>* order,
            bool keep_transfers)
      : cost_(cost),
        graph_(cost.graph()),
        order_(order),
        keep_transfers_(keep_transfers),
        devices_(cost.device_count()),
        device_(devices_),
        next_event_(devices_, kNever),
        dirty_(devices_, true),
        arrival_(devices_),
        slowest_(devices_, kNone),
        most_bytes_(devices_) {
    const NodeIndex nodes = graph_.node_count();
    result_.start.assign(nodes, kNever), result_.finish.assign(nodes, kNever);
    result_.order.resize(devices_);
    result_.use.resize(devices_);
    node_.resize(nodes);
    for (NodeIndex node = 0; node < nodes; ++node)
      node_[node] = {0, priority.empty() ? 0 : priority[node], cost.run_time(node, device_of[node]),
                     graph_.in_degree(node), device_of[node]};
    if (keep_transfers_) exposed_from_.assign(nodes, 0);
  }

  Simulation run();

 private:
  // The values of a node that are read when one of its producers ends. They are in one struct,
  // because on large graphs each read is a cache miss.
  struct NodeState {
    Nanoseconds ready_at, priority, run_time;
    EdgeIndex waiting;  // number of producers that have not ended
    DeviceIndex device;
  };
  struct DeviceState {
    Nanoseconds free_at = 0;
    NodeIndex running = kNone;
    // Nodes of which all inputs were sent, ordered by the arrival of their last input.
    ArrivalQueue arriving;
    ReadyQueue ready;
    std::size_t next = 0;  // index of the device's next node in the given order
    Nanoseconds sends_until = 0, receives_until = 0;
  };

  void release(NodeIndex node);
  void end_node(NodeIndex node, DeviceIndex home, Nanoseconds now);
  void send(NodeIndex node, DeviceIndex home, Nanoseconds now);
  Nanoseconds transfer(NodeIndex node, EdgeIndex edge, DeviceIndex from, DeviceIndex to, Nanoseconds now);
  void fetch_ahead(NodeIndex node);
  NodeIndex choose(DeviceState& device, DeviceIndex index, Nanoseconds now);
  void try_start(DeviceIndex index, Nanoseconds now);
  void account_wait(DeviceIndex index, NodeIndex node, Nanoseconds now);
  [[noreturn]] void report_deadlock() const;

  const CostModel& cost_;
  const TaskGraph& graph_;
  const std::vector<std::vector<NodeIndex>>* order_;
  const bool keep_transfers_;
  const DeviceIndex devices_;
  std::vector<DeviceState> device_;
  // For each device, the end of the node that runs on it. If the device is idle, the time at which
  // the next known node is ready.
  std::vector<Nanoseconds> next_event_;
  std::vector<char> dirty_;  // for each device, whether it may be able to start a node
  std::vector<NodeState> node_;
  std::vector<Nanoseconds> exposed_from_;
  NodeIndex last_started_ = kNone;
  std::vector<Nanoseconds> arrival_;  // used inside send(): one element per device
  // Used inside send(). For each device to which the node sends: the edge with the longest
  // transfer, and the most bytes of any edge. These can be different edges if the file gives
  // transfer times.
  std::vector<EdgeIndex> slowest_;
  std::vector<Bytes> most_bytes_;
  std::vector<DeviceIndex> receivers_;
  NodeIndex ended_ = 0;
  Simulation result_;
};

void EventLoop::release(NodeIndex node) {
  const NodeState& state = node_[node];
  dirty_[state.device] = true;
  if (order_ == nullptr) device_[state.device].arriving.emplace(state.ready_at, node);
}

// Returns the arrival of a transfer. Under contention, each device sends and receives its transfers
// one by one, in the order of requests.
Nanoseconds EventLoop::transfer(NodeIndex node, EdgeIndex edge, DeviceIndex from, DeviceIndex to,
                                Nanoseconds now) {
  Nanoseconds start = now;
  if (cost_.machine().contention()) {
    start = std::max({now, device_[from].sends_until, device_[to].receives_until});
    device_[from].sends_until = device_[to].receives_until = start + cost_.link_time(edge, from, to);
  }
  const Nanoseconds arrival = start + cost_.transfer_time(edge, from, to);
  if (keep_transfers_) result_.transfers.push_back({node, from, to, start, arrival, most_bytes_[to]});
  return arrival;
}

// Sends the node's output to every device with a consumer. Fills arrival_ for these devices and for
// the node's own device.
void EventLoop::send(NodeIndex node, DeviceIndex home, Nanoseconds now) {
  receivers_.clear();
  for (EdgeIndex edge = graph_.out_begin(node); edge < graph_.out_end(node); ++edge) {
    const DeviceIndex to = node_[graph_.target(edge)].device;
    if (to == home) continue;
    EdgeIndex& slowest = slowest_[to];
    if (slowest == kNone) {
      slowest = edge;
      most_bytes_[to] = 0;
      receivers_.push_back(to);
    } else if (cost_.transfer_time(edge, home, to) > cost_.transfer_time(slowest, home, to)) {
      slowest = edge;
    }
    if (keep_transfers_) most_bytes_[to] = std::max(most_bytes_[to], graph_.bytes(edge));
  }
  arrival_[home] = now;
  for (const DeviceIndex to : receivers_) {
    arrival_[to] = transfer(node, slowest_[to], home, to, now);
    slowest_[to] = kNone;
  }
}

void EventLoop::end_node(NodeIndex node, DeviceIndex home, Nanoseconds now) {
  ++ended_;
  send(node, home, now);
  for (const NodeIndex next : graph_.successors(node)) {
    NodeState& state = node_[next];
    if (keep_transfers_) exposed_from_[next] = now;
    state.ready_at = std::max(state.ready_at, arrival_[state.device]);
    if (--state.waiting == 0) release(next);
  }
}

NodeIndex EventLoop::choose(DeviceState& device, DeviceIndex index, Nanoseconds now) {
  next_event_[index] = kNever;
  if (order_ != nullptr) {
    const std::vector<NodeIndex>& order = (*order_)[index];
    if (device.next == order.size()) return kNone;
    const NodeIndex node = order[device.next];
    const NodeState& state = node_[node];
    if (state.waiting > 0) return kNone;
    if (state.ready_at > now) {
      next_event_[index] = state.ready_at;
      return kNone;
    }
    if (++device.next < order.size()) __builtin_prefetch(&node_[order[device.next]]);
    return node;
  }
  while (!device.arriving.empty() && device.arriving.top().first <= now) {
    const NodeIndex node = device.arriving.top().second;
    device.arriving.pop();
    device.ready.emplace(node_[node].priority, node);
  }
  if (!device.ready.empty()) {
    const NodeIndex node = device.ready.top().second;
    device.ready.pop();
    if (!device.ready.empty()) __builtin_prefetch(&node_[device.ready.top().second]);
    return node;
  }
  if (!device.arriving.empty()) next_event_[index] = device.arriving.top().first;
  return kNone;
}

// Adds up the time for which the device waits for a transfer. The device is idle then, although the
// last producer of its next node has ended.
void EventLoop::account_wait(DeviceIndex index, NodeIndex node, Nanoseconds now) {
  const Nanoseconds idle_from = std::max(device_[index].free_at, exposed_from_[node]);
  if (now > idle_from) result_.use[index].exposed_transfer += now - idle_from;
}

// Prefetches memory that will soon be read: the edges of the starting node, and the consumers of
// the node that started before it. Without prefetching, each of these reads would be a cache miss.
void EventLoop::fetch_ahead(NodeIndex node) {
  __builtin_prefetch(graph_.successors(node).data());
  __builtin_prefetch(cost_.transfer_times(node).data());
  if (last_started_ != kNone)
    for (const NodeIndex next : graph_.successors(last_started_)) __builtin_prefetch(&node_[next]);
  last_started_ = node;
}

void EventLoop::try_start(DeviceIndex index, Nanoseconds now) {
  DeviceState& device = device_[index];
  if (device.running != kNone) return;
  const NodeIndex node = choose(device, index, now);
  if (node == kNone) return;
  if (keep_transfers_) account_wait(index, node, now);
  device.running = node;
  device.free_at = next_event_[index] = now + node_[node].run_time;
  result_.start[node] = now, result_.finish[node] = device.free_at;
  result_.order[index].push_back(node);
  fetch_ahead(node);
}

void EventLoop::report_deadlock() const {
  for (DeviceIndex index = 0; index < devices_; ++index) {
    const DeviceState& device = device_[index];
    if (order_ == nullptr || device.next == (*order_)[index].size()) continue;
    const NodeIndex node = (*order_)[index][device.next];
    for (const EdgeIndex edge : graph_.in_edges(node))
      if (result_.finish[graph_.source(edge)] == kNever)
        throw std::runtime_error(
            fmt::format("placement: the order deadlocks: device {} waits for node {} to end before node {}",
                        index, graph_.label(graph_.source(edge)), graph_.label(node)));
  }
  throw std::runtime_error("placement: the order leaves nodes out");
}

Simulation EventLoop::run() {
  for (NodeIndex node = 0; node < graph_.node_count(); ++node)
    if (node_[node].waiting == 0) release(node);
  for (Nanoseconds now = 0; ended_ < graph_.node_count();) {
    for (DeviceIndex index = 0; index < devices_; ++index)
      if (std::exchange(dirty_[index], false)) try_start(index, now);
    now = *std::min_element(next_event_.begin(), next_event_.end());
    if (now == kNever) report_deadlock();
    // First end all nodes that end now. Thus each choice of the next node sees all nodes that are
    // ready.
    for (DeviceIndex index = 0; index < devices_; ++index) {
      if (next_event_[index] != now) continue;
      dirty_[index] = true;
      if (device_[index].running != kNone) end_node(std::exchange(device_[index].running, kNone), index, now);
    }
  }
  for (const DeviceState& device : device_) result_.makespan = std::max(result_.makespan, device.free_at);
  return std::move(result_);
}

void account(const CostModel& cost, std::span<const DeviceIndex> device_of, Simulation& result) {
  for (DeviceIndex device = 0; device < cost.device_count(); ++device) {
    DeviceUtilisation& use = result.use[device];
    for (const NodeIndex node : result.order[device]) use.busy += result.finish[node] - result.start[node];
    use.nodes = static_cast<std::int32_t>(result.order[device].size());
    use.idle = result.makespan - use.busy;
  }
  std::stable_sort(result.transfers.begin(), result.transfers.end(),
                   [](const SimulatedTransfer& a, const SimulatedTransfer& b) { return a.start < b.start; });
  for (const SimulatedTransfer& transfer : result.transfers) result.cut_bytes += transfer.bytes;
  account_memory(cost.graph(), device_of, result);
}

}  // namespace

Simulation simulate_list(const CostModel& cost, std::span<const DeviceIndex> device_of,
                         std::span<const Nanoseconds> priority, Detail detail) {
  Simulation result = EventLoop(cost, device_of, priority, nullptr, detail == Detail::kAll).run();
  if (detail == Detail::kAll) account(cost, device_of, result);
  return result;
}

Simulation simulate(const CostModel& cost, const Placement& placement, Detail detail) {
  if (placement.order.empty())
    return simulate_list(cost, placement.device_of, bottom_levels(cost, placement.device_of), detail);
  Simulation result =
      EventLoop(cost, placement.device_of, {}, &placement.order, detail == Detail::kAll).run();
  if (detail == Detail::kAll) account(cost, placement.device_of, result);
  return result;
}

}  // namespace convoy::partition
