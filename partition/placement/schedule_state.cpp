// Incremental re-simulation under fixed orders.
#include "partition/placement/schedule_state.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace convoy::partition {

ScheduleState::ScheduleState(const CostModel& cost, std::span<const DeviceIndex> device_of,
                             const Simulation& simulation)
    : cost_(cost),
      graph_(cost.graph()),
      prunable_(cost.same_speeds()),
      same_links_(cost.machine().same_links()),
      node_(device_of.size()),
      in_begin_(1, 0),
      order_(simulation.order) {
  const std::vector<Nanoseconds> bottom = bottom_levels(cost);
  in_begin_.reserve(device_of.size() + 1), in_edge_.reserve(graph_.edge_count());
  for (NodeIndex node = 0; node < graph_.node_count(); ++node) {
    node_[node] = {
        0, simulation.start[node], simulation.finish[node], 0, bottom[node], device_of[node], kNone, kNone,
        0};
    for (const EdgeIndex edge : graph_.in_edges(node))
      in_edge_.push_back({graph_.source(edge), edge, cost.transfer_time(edge)});
    in_begin_.push_back(static_cast<EdgeIndex>(in_edge_.size()));
  }
  // By start; nodes that last no time come before what starts with them, producers before
  // consumers. Devices' own orders agree with this, because on one device only a node without time
  // can share its start with the next.
  struct Place {
    Nanoseconds start, finish;
    NodeIndex node;
  };
  std::vector<Place> sequence;
  sequence.reserve(device_of.size());
  for (const NodeIndex node : graph_.topological_order())
    sequence.push_back({node_[node].start, node_[node].finish, node});
  std::stable_sort(sequence.begin(), sequence.end(), [](const Place& a, const Place& b) {
    return a.start != b.start ? a.start < b.start : a.finish < b.finish;
  });
  for (std::size_t i = 0; i < sequence.size(); ++i)
    node_[sequence[i].node].key = static_cast<Key>(i + 1) * kSpacing;
  for (std::vector<NodeIndex>& order : order_) {
    const auto by_key = [&](NodeIndex a, NodeIndex b) { return node_[a].key < node_[b].key; };
    if (!std::is_sorted(order.begin(), order.end(), by_key)) std::sort(order.begin(), order.end(), by_key);
    for (std::size_t i = 1; i < order.size(); ++i)
      node_[order[i - 1]].next = order[i], node_[order[i]].previous = order[i - 1];
  }
  constexpr NodeIndex kMostExact = 5000;  // beyond, several tensors of one producer are taken one by one
  if (cost.machine().contention() || (!cost.transfers_independent() && graph_.node_count() <= kMostExact)) {
    if (prunable_) bottom_ = bottom;
    contended_.emplace(cost, order_);
    contended_->follow(0, std::numeric_limits<Nanoseconds>::max() / 2, {});
    copy_followed_times();
    return;
  }
  // Equal to the simulation's times unless that had producers of several tensors.
  for (const Place& place : sequence) {
    NodeState& state = node_[place.node];
    state.start = earliest_start(place.node);
    state.finish = state.start + cost.run_time(place.node, state.device);
  }
}

Nanoseconds ScheduleState::makespan() const {
  Nanoseconds latest = 0;
  for (const std::vector<NodeIndex>& order : order_)
    if (!order.empty()) latest = std::max(latest, node_[order.back()].finish);
  return latest;
}

std::vector<DeviceIndex> ScheduleState::devices() const {
  std::vector<DeviceIndex> devices;
  devices.reserve(node_.size());
  for (const NodeState& state : node_) devices.push_back(state.device);
  return devices;
}

Placement ScheduleState::placement() const { return {cost_.device_count(), devices(), order_}; }

Nanoseconds ScheduleState::arrival(NodeIndex node, DeviceIndex device) const {
  Nanoseconds latest = 0;
  for (const InEdge& in : in_edges(node))
    latest = std::max(latest, node_[in.producer].finish + transfer(in, device));
  return latest;
}

Nanoseconds ScheduleState::earliest_start(NodeIndex node) const {
  const NodeState& state = node_[node];
  const Nanoseconds inputs = arrival(node, state.device);
  return state.previous == kNone ? inputs : std::max(inputs, node_[state.previous].finish);
}

// Over the node's out-edges, were it on `device`.
Nanoseconds ScheduleState::longest_behind(NodeIndex node, DeviceIndex device) const {
  Nanoseconds longest = 0;
  for (EdgeIndex edge = graph_.out_begin(node); edge < graph_.out_end(node); ++edge) {
    const NodeState& next = node_[graph_.target(edge)];
    longest = std::max(longest,
                       cost_.transfer_time(edge, device, next.device) + next.finish - next.start + next.tail);
  }
  return longest;
}

Nanoseconds ScheduleState::estimate(NodeIndex node, DeviceIndex device) const {
  const Nanoseconds ready = arrival(node, device), time = cost_.run_time(node, device);
  // The neighbours on the device, were it inserted where its inputs arrive.
  const std::vector<NodeIndex>& order = order_[device];
  const auto behind = std::partition_point(order.begin(), order.end(), [&](NodeIndex other) {
    return node_[other].start < ready || node_[other].key < node_[node].key;
  });
  Nanoseconds start = ready, tail = 0;
  auto before = behind;
  while (before != order.begin() && *(before - 1) == node) --before;
  if (before != order.begin()) start = std::max(start, node_[*(before - 1)].finish);
  if (behind != order.end()) tail = length(*behind) + node_[*behind].tail;
  return start + time + std::max(tail, longest_behind(node, device));
}

std::vector<NodeIndex>::iterator ScheduleState::place_of(NodeIndex node) {
  std::vector<NodeIndex>& order = order_[node_[node].device];
  return std::lower_bound(order.begin(), order.end(), node, [&](NodeIndex a, NodeIndex b) {
    return node_[a].key != node_[b].key ? node_[a].key < node_[b].key : a < b;
  });
}

void ScheduleState::unlink(NodeIndex node) {
  order_[node_[node].device].erase(place_of(node));
  const NodeIndex before = node_[node].previous, behind = node_[node].next;
  if (before != kNone) node_[before].next = behind;
  if (behind != kNone) node_[behind].previous = before;
}

void ScheduleState::link(NodeIndex node) {
  std::vector<NodeIndex>& order = order_[node_[node].device];
  const auto place = place_of(node);
  const NodeIndex behind = place != order.end() ? *place : kNone;
  const NodeIndex before = place != order.begin() ? *(place - 1) : kNone;
  order.insert(place, node);
  node_[node].previous = before, node_[node].next = behind;
  if (before != kNone) node_[before].next = node;
  if (behind != kNone) node_[behind].previous = node;
}

void ScheduleState::touch(NodeIndex node) {
  if (node_[node].queued == round_) return;
  node_[node].queued = round_;
  heap_.emplace_back(-node_[node].key, -node);
  std::push_heap(heap_.begin(), heap_.end());
}

void ScheduleState::touch_successors(NodeIndex node) {
  for (const NodeIndex next : graph_.successors(node)) touch(next);
}

void ScheduleState::begin_move() {
  ++round_;
  heap_.clear();
  log_.clear();
  from_ = std::numeric_limits<Nanoseconds>::max();
}

bool ScheduleState::propagate(Nanoseconds limit) {
  if (contended_) return follow(limit);
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end());
    const NodeIndex node = -heap_.back().second;
    heap_.pop_back();
    ++recomputed_;
    const Nanoseconds start = earliest_start(node), finish = start + cost_.run_time(node, node_[node].device);
    if (start == node_[node].start && finish == node_[node].finish) continue;
    if (prunable_ && start > limit - node_[node].bottom) return false;
    record(node, false);
    node_[node].start = start, node_[node].finish = finish;
    touch_successors(node);
    if (node_[node].next != kNone) touch(node_[node].next);
  }
  return true;
}

void ScheduleState::relocate(NodeIndex node, DeviceIndex device) {
  node_[node].device = device;
  link(node);
  if (contended_) {
    contended_->set_device(node, device);
    if (node_[node].next != kNone) from_ = std::min(from_, node_[node_[node].next].start);
    return;
  }
  touch(node);
  if (node_[node].next != kNone) touch(node_[node].next);
  touch_successors(node);
}

void ScheduleState::leave(NodeIndex node) {
  record(node, true);
  if (contended_)
    felt_from(node);
  else if (node_[node].next != kNone)
    touch(node_[node].next);
  unlink(node);
}

bool ScheduleState::move(std::span<const Reassignment> nodes, Nanoseconds limit) {
  begin_move();
  for (const auto& [node, device] : nodes) {
    if (node_[node].device == device) continue;
    leave(node);
    relocate(node, device);
  }
  return propagate(limit);
}

// A key between the node's producers and consumers and, within that, where its inputs arrive on the
// device.
void ScheduleState::choose_key(NodeIndex node, DeviceIndex device) {
  Key low = 0, high = std::numeric_limits<Key>::max();
  for (const EdgeIndex edge : graph_.in_edges(node)) low = std::max(low, node_[graph_.source(edge)].key);
  for (const NodeIndex next : graph_.successors(node)) high = std::min(high, node_[next].key);
  const Nanoseconds ready = arrival(node, device);
  const std::vector<NodeIndex>& order = order_[device];
  const auto place = std::partition_point(order.begin(), order.end(), [&](NodeIndex other) {
    return node_[other].key <= low || (node_[other].key < high && node_[other].start < ready);
  });
  if (place != order.begin()) low = std::max(low, node_[*(place - 1)].key);
  if (place != order.end()) high = std::min(high, node_[*place].key);
  if (high == std::numeric_limits<Key>::max()) high = low + 2 * kSpacing;
  if (high - low >= 2) node_[node].key = low + (high - low) / 2;
}

bool ScheduleState::move_in_time(NodeIndex node, DeviceIndex device, Nanoseconds limit) {
  begin_move();
  leave(node);
  choose_key(node, device);
  relocate(node, device);
  return propagate(limit);
}

void ScheduleState::rollback() {
  heap_.clear();
  for (auto undo = log_.rbegin(); undo != log_.rend(); ++undo) {
    if (undo->moved) {
      unlink(undo->node);
      node_[undo->node].device = undo->device, node_[undo->node].key = undo->key;
      link(undo->node);
      if (contended_) contended_->set_device(undo->node, undo->device);
    }
    node_[undo->node].start = undo->start, node_[undo->node].finish = undo->finish;
  }
  log_.clear();
  if (!followed_) return;
  followed_ = false;
  contended_->undo();
  copy_followed_times();
}

// Merges the devices' orders by key, from the back.
void ScheduleState::compute_tails() {
  for (NodeState& state : node_) state.tail = 0;
  std::vector<std::pair<Key, NodeIndex>> sequence;
  sequence.reserve(node_.size());
  for (NodeIndex node = 0; node < graph_.node_count(); ++node) sequence.emplace_back(node_[node].key, node);
  std::sort(sequence.begin(), sequence.end(), std::greater<>());
  for (const auto& [key, node] : sequence) {
    NodeState& state = node_[node];
    state.tail = longest_behind(node, state.device);
    if (state.next != kNone) state.tail = std::max(state.tail, length(state.next) + node_[state.next].tail);
  }
}

NodeIndex ScheduleState::tight_producer(NodeIndex node) const {
  if (contended_) {
    for (const InEdge& in : in_edges(node)) {
      if (node_[in.producer].device == node_[node].device) {
        if (node_[in.producer].finish == node_[node].start) return in.producer;
      } else if (contended_->arrival(in.edge) == node_[node].start) {
        EdgeIndex edge = in.edge;
        while (contended_->waited_for(edge) != kNone) edge = contended_->waited_for(edge);
        return graph_.source(edge);
      }
    }
    return kNone;
  }
  for (const InEdge& in : in_edges(node))
    if (node_[in.producer].finish + transfer(in, node_[node].device) == node_[node].start) return in.producer;
  return kNone;
}

void ScheduleState::critical_path(std::vector<NodeIndex>& path, bool producers_first) const {
  path.clear();
  NodeIndex node = kNone;
  for (const std::vector<NodeIndex>& order : order_)
    if (!order.empty() && (node == kNone || node_[order.back()].finish > node_[node].finish))
      node = order.back();
  while (node != kNone) {
    path.push_back(node);
    NodeIndex before = node_[node].previous;
    if (before != kNone && node_[before].finish != node_[node].start) before = kNone;
    const NodeIndex producer = producers_first || before == kNone ? tight_producer(node) : kNone;
    if (contended_ && producer != kNone) waiting_path(node, path);
    node = producer != kNone ? producer : before;
  }
  std::reverse(path.begin(), path.end());
}

}  // namespace convoy::partition
