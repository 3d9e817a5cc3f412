// Memory of a schedule under change: the simulator's account (memory_use.cpp) of the current times,
// without its curves.
#include <algorithm>

#include "partition/placement/schedule_state.h"

namespace convoy::partition {

// The node's output at home, and its copies where consumers are. A copy has the number of the first
// edge that needs it.
void ScheduleState::add_outputs(NodeIndex node) const {
  const DeviceIndex home = node_[node].device;
  Nanoseconds until = node_[node].finish;
  receivers_.clear();
  for (EdgeIndex edge = graph_.out_begin(node); edge < graph_.out_end(node); ++edge) {
    const NodeState& consumer = node_[graph_.target(edge)];
    if (consumer.device == home) {
      until = std::max(until, consumer.finish);
      continue;
    }
    Copy& copy = copies_[consumer.device];
    if (copy.bytes < 0) {
      receivers_.push_back(consumer.device);
      copy = {0, edge, contended_ ? contended_->sent(edge) : node_[node].finish, 0, 0};
    }
    copy.bytes = std::max(copy.bytes, graph_.bytes(edge));
    copy.arrival = std::max(
        copy.arrival, contended_ ? contended_->arrival(edge)
                                 : node_[node].finish + cost_.transfer_time(edge, home, consumer.device));
    copy.until = std::max(copy.until, consumer.finish);
  }
  for (const DeviceIndex to : receivers_) {
    Copy& copy = copies_[to];
    until = std::max(until, copy.arrival);
    live_->live(graph_.node_count() + copy.edge, to, copy.bytes, copy.start,
                std::max(copy.arrival, copy.until));
    copy.bytes = -1;
  }
  live_->live(node, home, graph_.output_bytes(node), node_[node].start, until);
}

Bytes ScheduleState::overflow(Bytes most) const {
  const DeviceIndex devices = cost_.device_count();
  std::vector<Bytes> resident(devices, 0);
  for (const NodeState& state : node_)
    resident[state.device] += graph_.resident_bytes(static_cast<NodeIndex>(&state - node_.data()));
  const auto limit = [&](DeviceIndex device) { return cost_.machine().device(device).memory_limit; };
  Bytes sum = 0;
  for (DeviceIndex device = 0; device < devices; ++device)
    sum += std::max<Bytes>(0, resident[device] - limit(device));
  if (sum > most) return sum;
  copies_.resize(devices);
  if (!live_) live_.emplace(graph_.node_count() + graph_.edge_count(), devices);
  live_->begin();
  for (NodeIndex node = 0; node < graph_.node_count(); ++node) add_outputs(node);
  sum = 0;
  worst_ = {};
  for (DeviceIndex device = 0; device < devices; ++device) {
    const LiveBytes::Peak peak = live_->peak(device);
    const Bytes excess = resident[device] + peak.bytes - limit(device);
    if (excess > worst_.excess) worst_ = {device, peak.when, excess};
    sum += std::max<Bytes>(0, excess);
  }
  return sum;
}

// These are nodes with resident bytes, nodes with live outputs, and readers of live copies.
void ScheduleState::held_at_worst(std::vector<NodeIndex>& nodes) const {
  nodes.clear();
  const auto [device, when, excess] = worst_;
  if (excess <= 0) return;
  for (NodeIndex node = 0; node < graph_.node_count(); ++node) {
    const bool at_home = node_[node].device == device, begun = (at_home ? start(node) : finish(node)) <= when;
    if (at_home && graph_.resident_bytes(node) > 0) nodes.push_back(node);
    if (!begun || graph_.output_bytes(node) == 0) continue;
    bool needed = false;
    for (const NodeIndex next : graph_.successors(node)) {
      if (finish(next) <= when) continue;
      needed = true;
      if (node_[next].device == device && !at_home) nodes.push_back(next);
    }
    if (at_home && (needed || finish(node) > when)) nodes.push_back(node);
  }
}

}  // namespace convoy::partition
