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
      prunable_(cost.machine().same_speeds()),
      device_(device_of.begin(), device_of.end()),
      key_(device_of.size()),
      start_(simulation.start),
      finish_(simulation.finish),
      bottom_(bottom_levels(cost)),
      previous_(device_of.size(), kNone),
      next_(device_of.size(), kNone),
      order_(simulation.order),
      queued_(device_of.size(), 0) {
  // By start; nodes that last no time come before what starts with them, producers before consumers. Devices'
  // own orders agree with this, because on one device only a node without time can share its start with the
  // next.
  std::vector<NodeIndex> sequence(graph_.topological_order().begin(), graph_.topological_order().end());
  std::stable_sort(sequence.begin(), sequence.end(), [&](NodeIndex a, NodeIndex b) {
    return start_[a] != start_[b] ? start_[a] < start_[b] : finish_[a] < finish_[b];
  });
  for (std::size_t i = 0; i < sequence.size(); ++i) key_[sequence[i]] = static_cast<Key>(i + 1) * kSpacing;
  for (std::vector<NodeIndex>& order : order_) {
    std::sort(order.begin(), order.end(), [&](NodeIndex a, NodeIndex b) { return key_[a] < key_[b]; });
    for (std::size_t i = 1; i < order.size(); ++i)
      next_[order[i - 1]] = order[i], previous_[order[i]] = order[i - 1];
  }
  // Equal to the simulation's times unless that had contention or producers of several tensors.
  for (const NodeIndex node : sequence) {
    start_[node] = earliest_start(node);
    finish_[node] = start_[node] + cost.run_time(node, device_[node]);
  }
}

Nanoseconds ScheduleState::makespan() const {
  Nanoseconds latest = 0;
  for (const std::vector<NodeIndex>& order : order_)
    if (!order.empty()) latest = std::max(latest, finish_[order.back()]);
  return latest;
}

Placement ScheduleState::placement() const { return {cost_.device_count(), device_, order_}; }

Nanoseconds ScheduleState::arrival(NodeIndex node, DeviceIndex device) const {
  Nanoseconds latest = 0;
  for (const EdgeIndex edge : graph_.in_edges(node)) {
    const NodeIndex producer = graph_.source(edge);
    latest = std::max(latest, finish_[producer] + cost_.transfer_time(edge, device_[producer], device));
  }
  return latest;
}

Nanoseconds ScheduleState::earliest_start(NodeIndex node) const {
  const Nanoseconds inputs = arrival(node, device_[node]);
  return previous_[node] == kNone ? inputs : std::max(inputs, finish_[previous_[node]]);
}

Nanoseconds ScheduleState::estimate(NodeIndex node, DeviceIndex device) const {
  const Nanoseconds ready = arrival(node, device), time = cost_.run_time(node, device);
  // The neighbours on the device, were it inserted where its inputs arrive.
  const std::vector<NodeIndex>& order = order_[device];
  const auto behind = std::partition_point(order.begin(), order.end(), [&](NodeIndex other) {
    return start_[other] < ready || key_[other] < key_[node];
  });
  Nanoseconds start = ready, tail = 0;
  auto before = behind;
  while (before != order.begin() && *(before - 1) == node) --before;
  if (before != order.begin()) start = std::max(start, finish_[*(before - 1)]);
  if (behind != order.end()) tail = finish_[*behind] - start_[*behind] + tail_[*behind];
  for (EdgeIndex edge = graph_.out_begin(node); edge < graph_.out_end(node); ++edge) {
    const NodeIndex next = graph_.target(edge);
    tail = std::max(
        tail, cost_.transfer_time(edge, device, device_[next]) + finish_[next] - start_[next] + tail_[next]);
  }
  return start + time + tail;
}

std::vector<NodeIndex>::iterator ScheduleState::place_of(NodeIndex node) {
  std::vector<NodeIndex>& order = order_[device_[node]];
  return std::lower_bound(order.begin(), order.end(), node, [&](NodeIndex a, NodeIndex b) {
    return key_[a] != key_[b] ? key_[a] < key_[b] : a < b;
  });
}

void ScheduleState::unlink(NodeIndex node) {
  order_[device_[node]].erase(place_of(node));
  const NodeIndex before = previous_[node], behind = next_[node];
  if (before != kNone) next_[before] = behind;
  if (behind != kNone) previous_[behind] = before;
}

void ScheduleState::link(NodeIndex node) {
  std::vector<NodeIndex>& order = order_[device_[node]];
  const auto place = place_of(node);
  const NodeIndex behind = place != order.end() ? *place : kNone;
  const NodeIndex before = place != order.begin() ? *(place - 1) : kNone;
  order.insert(place, node);
  previous_[node] = before, next_[node] = behind;
  if (before != kNone) next_[before] = node;
  if (behind != kNone) previous_[behind] = node;
}

void ScheduleState::touch(NodeIndex node) {
  if (queued_[node] == round_) return;
  queued_[node] = round_;
  heap_.emplace_back(-key_[node], -node);
  std::push_heap(heap_.begin(), heap_.end());
}

void ScheduleState::touch_successors(NodeIndex node) {
  for (const NodeIndex next : graph_.successors(node)) touch(next);
}

void ScheduleState::begin_move() {
  ++round_;
  heap_.clear();
  log_.clear();
}

bool ScheduleState::propagate(Nanoseconds limit) {
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end());
    const NodeIndex node = -heap_.back().second;
    heap_.pop_back();
    ++recomputed_;
    const Nanoseconds start = earliest_start(node), finish = start + cost_.run_time(node, device_[node]);
    if (start == start_[node] && finish == finish_[node]) continue;
    if (prunable_ && start > limit - bottom_[node]) return false;
    record(node, false);
    start_[node] = start, finish_[node] = finish;
    touch_successors(node);
    if (next_[node] != kNone) touch(next_[node]);
  }
  return true;
}

void ScheduleState::relocate(NodeIndex node, DeviceIndex device) {
  device_[node] = device;
  link(node);
  touch(node);
  if (next_[node] != kNone) touch(next_[node]);
  touch_successors(node);
}

bool ScheduleState::move(std::span<const Reassignment> nodes, Nanoseconds limit) {
  begin_move();
  for (const auto& [node, device] : nodes) {
    if (device_[node] == device) continue;
    record(node, true);
    if (next_[node] != kNone) touch(next_[node]);
    unlink(node);
    relocate(node, device);
  }
  return propagate(limit);
}

// A key between the node's producers and consumers and, within that, where its inputs arrive on the device.
void ScheduleState::choose_key(NodeIndex node, DeviceIndex device) {
  Key low = 0, high = std::numeric_limits<Key>::max();
  for (const EdgeIndex edge : graph_.in_edges(node)) low = std::max(low, key_[graph_.source(edge)]);
  for (const NodeIndex next : graph_.successors(node)) high = std::min(high, key_[next]);
  const Nanoseconds ready = arrival(node, device);
  const std::vector<NodeIndex>& order = order_[device];
  const auto place = std::partition_point(order.begin(), order.end(), [&](NodeIndex other) {
    return key_[other] <= low || (key_[other] < high && start_[other] < ready);
  });
  if (place != order.begin()) low = std::max(low, key_[*(place - 1)]);
  if (place != order.end()) high = std::min(high, key_[*place]);
  if (high == std::numeric_limits<Key>::max()) high = low + 2 * kSpacing;
  if (high - low >= 2) key_[node] = low + (high - low) / 2;
}

bool ScheduleState::move_in_time(NodeIndex node, DeviceIndex device, Nanoseconds limit) {
  begin_move();
  record(node, true);
  if (next_[node] != kNone) touch(next_[node]);
  unlink(node);
  choose_key(node, device);
  relocate(node, device);
  return propagate(limit);
}

void ScheduleState::rollback() {
  heap_.clear();
  for (auto undo = log_.rbegin(); undo != log_.rend(); ++undo) {
    if (undo->moved) {
      unlink(undo->node);
      device_[undo->node] = undo->device, key_[undo->node] = undo->key;
      link(undo->node);
    }
    start_[undo->node] = undo->start, finish_[undo->node] = undo->finish;
  }
  log_.clear();
}

// Merges the devices' orders by key, from the back.
void ScheduleState::compute_tails() {
  tail_.assign(device_.size(), 0);
  std::vector<NodeIndex> sequence(device_.size());
  std::iota(sequence.begin(), sequence.end(), NodeIndex{0});
  std::sort(sequence.begin(), sequence.end(),
            [&](NodeIndex a, NodeIndex b) { return key_[a] != key_[b] ? key_[a] > key_[b] : a > b; });
  for (const NodeIndex node : sequence) {
    Nanoseconds longest = 0;
    for (EdgeIndex edge = graph_.out_begin(node); edge < graph_.out_end(node); ++edge) {
      const NodeIndex next = graph_.target(edge);
      const Nanoseconds transfer = cost_.transfer_time(edge, device_[node], device_[next]);
      longest = std::max(longest, transfer + finish_[next] - start_[next] + tail_[next]);
    }
    if (const NodeIndex next = next_[node]; next != kNone)
      longest = std::max(longest, finish_[next] - start_[next] + tail_[next]);
    tail_[node] = longest;
  }
}

NodeIndex ScheduleState::tight_producer(NodeIndex node) const {
  for (const EdgeIndex edge : graph_.in_edges(node)) {
    const NodeIndex producer = graph_.source(edge);
    const Nanoseconds transfer = cost_.transfer_time(edge, device_[producer], device_[node]);
    if (finish_[producer] + transfer == start_[node]) return producer;
  }
  return kNone;
}

void ScheduleState::critical_path(std::vector<NodeIndex>& path, bool producers_first) const {
  path.clear();
  NodeIndex node = kNone;
  for (const std::vector<NodeIndex>& order : order_)
    if (!order.empty() && (node == kNone || finish_[order.back()] > finish_[node])) node = order.back();
  while (node != kNone) {
    path.push_back(node);
    NodeIndex before = previous_[node];
    if (before != kNone && finish_[before] != start_[node]) before = kNone;
    const NodeIndex producer = producers_first || before == kNone ? tight_producer(node) : kNone;
    node = producer != kNone ? producer : before;
  }
  std::reverse(path.begin(), path.end());
}

}  // namespace convoy::partition
