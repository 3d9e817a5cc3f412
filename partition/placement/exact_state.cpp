#include "partition/placement/exact_state.h"

#include <algorithm>
#include <utility>

namespace convoy::partition {

ExactState::ExactState(const CostModel& cost, std::span<const DeviceIndex> device_of)
    : cost_(&cost), device_of_(device_of.data()) {
  start_.fill(kNever), finish_.fill(kNever);
  const TaskGraph& graph = cost.graph();
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    DeviceState& device = device_[device_of[node]];
    ++device.nodes_left;
    device.left += cost.run_time(node, device_of[node]);
    resident_[device_of[node]] += graph.resident_bytes(node);
  }
}

Nanoseconds ExactState::inputs_at(NodeIndex node) const {
  const DeviceIndex home = device_of_[node];
  Nanoseconds latest = 0;
  for (const EdgeIndex edge : cost_->graph().in_edges(node)) {
    const NodeIndex producer = cost_->graph().source(edge);
    if (finish_[producer] == kNever || finish_[producer] > now_ ||
        device_[device_of_[producer]].running == producer)
      return kNever;
    latest =
        std::max(latest, device_of_[producer] == home ? finish_[producer] : sent_[producer][home].arrival);
  }
  return latest;
}

bool ExactState::selectable(NodeIndex node) const {
  if (start_[node] != kNever) return false;
  const DeviceIndex home = device_of_[node];
  for (const EdgeIndex edge : cost_->graph().in_edges(node)) {
    const NodeIndex producer = cost_->graph().source(edge);
    if (device_of_[producer] == home && start_[producer] == kNever) return false;
  }
  return true;
}

bool ExactState::try_start(DeviceIndex index) {
  DeviceState& device = device_[index];
  if (device.running != kNone || device.nodes_left == 0) return true;
  device.next_event = kNever;
  if (device.chosen == kNone) return false;
  const Nanoseconds ready = inputs_at(device.chosen);
  if (ready > now_) {
    device.next_event = ready;
    return true;
  }
  const Nanoseconds time = cost_->run_time(device.chosen, index);
  device.running = device.chosen;
  device.chosen = kNone;
  --device.nodes_left;
  device.left -= time;
  start_[device.running] = now_;
  turn_[device.running] = started_++;
  finish_[device.running] = device.free_at = device.next_event = now_ + time;
  return true;
}

void ExactState::send(NodeIndex node, DeviceIndex to, EdgeIndex slowest, Bytes bytes) {
  const DeviceIndex from = device_of_[node];
  Nanoseconds start = now_;
  if (cost_->machine().contention()) {
    start = std::max({now_, device_[from].sends_until, device_[to].receives_until});
    device_[from].sends_until = device_[to].receives_until = start + cost_->link_time(slowest, from, to);
  }
  sent_[node][to] = {start, start + cost_->transfer_time(slowest, from, to), bytes};
}

// Ends the node that runs on the device. Sends its output once to each device with a consumer, in
// the order of the edges.
void ExactState::end(DeviceIndex index) {
  const TaskGraph& graph = cost_->graph();
  const NodeIndex node = std::exchange(device_[index].running, kNone);
  device_[index].next_event = kNever;
  ++ended_;
  for (EdgeIndex first = graph.out_begin(node); first < graph.out_end(node); ++first) {
    const DeviceIndex to = device_of_[graph.target(first)];
    device_[to].dirty = true;
    if (to == index || sent_[node][to].start != kNever) continue;
    EdgeIndex slowest = first;
    Bytes most = 0;
    for (EdgeIndex edge = first; edge < graph.out_end(node); ++edge) {
      if (device_of_[graph.target(edge)] != to) continue;
      if (cost_->transfer_time(edge, index, to) > cost_->transfer_time(slowest, index, to)) slowest = edge;
      most = std::max(most, graph.bytes(edge));
    }
    send(node, to, slowest, most);
  }
}

DeviceIndex ExactState::advance() {
  const DeviceIndex devices = cost_->device_count();
  if (now_ < 0) now_ = 0;
  while (!ended()) {
    for (DeviceIndex index = 0; index < devices; ++index) {
      if (!device_[index].dirty) continue;
      if (!try_start(index)) return index;
      device_[index].dirty = false;
    }
    Nanoseconds next = kNever;
    for (DeviceIndex index = 0; index < devices; ++index) next = std::min(next, device_[index].next_event);
    if (next == kNever) return kNone;
    now_ = next;
    for (DeviceIndex index = 0; index < devices; ++index) {
      if (device_[index].next_event != now_) continue;
      device_[index].dirty = true;
      if (device_[index].running != kNone) end(index);
    }
  }
  return kNone;
}

Nanoseconds ExactState::bound() const {
  const TaskGraph& graph = cost_->graph();
  std::array<Nanoseconds, kMostExactNodes> earliest;
  Nanoseconds longest = 0;
  for (const NodeIndex node : graph.topological_order()) {
    const DeviceIndex home = device_of_[node];
    earliest[node] = finish_[node];
    if (finish_[node] == kNever) {
      Nanoseconds begin = std::max(now_, device_[home].free_at);
      for (const EdgeIndex edge : graph.in_edges(node)) {
        const NodeIndex producer = graph.source(edge);
        const Nanoseconds arrival = sent_[producer][home].arrival;
        begin = std::max(begin,
                         arrival != kNever && device_of_[producer] != home
                             ? arrival
                             : earliest[producer] + cost_->transfer_time(edge, device_of_[producer], home));
      }
      earliest[node] = begin + cost_->run_time(node, home);
    }
    longest = std::max(longest, earliest[node]);
  }
  for (DeviceIndex device = 0; device < cost_->device_count(); ++device)
    if (device_[device].nodes_left > 0)
      longest = std::max(longest, std::max(now_, device_[device].free_at) + device_[device].left);
  return longest;
}

// Returns when the device can free this output. This is when its last consumer on the device has
// ended. On the device that made it, all its transfers must have arrived, too.
Nanoseconds ExactState::last_use(NodeIndex producer, DeviceIndex device) const {
  const bool home = device_of_[producer] == device;
  Nanoseconds until = home ? finish_[producer] : sent_[producer][device].arrival;
  for (const NodeIndex next : cost_->graph().successors(producer)) {
    if (device_of_[next] == device)
      until = std::max(until, finish_[next]);
    else if (home)
      until =
          std::max(until, finish_[producer] == kNever ? kNever : sent_[producer][device_of_[next]].arrival);
  }
  return until;
}

Bytes ExactState::live(DeviceIndex device, Nanoseconds time) const {
  const TaskGraph& graph = cost_->graph();
  Bytes sum = resident_[device];
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    const bool home = device_of_[node] == device;
    const Nanoseconds from = home ? start_[node] : sent_[node][device].start;
    if (from > time) continue;
    const Nanoseconds until = last_use(node, device);
    if (until > time || (until == time && from == time))
      sum += home ? graph.output_bytes(node) : sent_[node][device].bytes;
  }
  return sum;
}

bool ExactState::within_limits() const {
  const TaskGraph& graph = cost_->graph();
  const Nanoseconds until = ended() ? kNever : now_;
  for (DeviceIndex device = 0; device < cost_->device_count(); ++device) {
    const Bytes limit = cost_->machine().device(device).memory_limit;
    if (limit == kUnlimited) continue;
    if (resident_[device] > limit) return false;
    for (NodeIndex node = 0; node < graph.node_count(); ++node) {
      const Nanoseconds from = device_of_[node] == device ? start_[node] : sent_[node][device].start;
      if (from < until && live(device, from) > limit) return false;
    }
  }
  return true;
}

}  // namespace convoy::partition
