#include "partition/placement/schedule_memory.h"

#include <algorithm>

namespace convoy::partition {

// Adds the node's output on its own device and its copies on the devices of consumers. For
// LiveBytes, the number of an output is that of its node, and the number of a copy is the node
// count plus the index of the first edge that needs the copy.
void ScheduleMemory::add_outputs(const ScheduleState& state, NodeIndex node) {
  const TaskGraph& graph = cost_.graph();
  const ContendedTimes* times = state.contended();
  const DeviceIndex home = state.device_of(node);
  const Nanoseconds finish = state.finish(node);
  Nanoseconds until = finish;
  receivers_.clear();
  for (EdgeIndex edge = graph.out_begin(node); edge < graph.out_end(node); ++edge) {
    const NodeIndex consumer = graph.target(edge);
    const DeviceIndex to = state.device_of(consumer);
    if (to == home) {
      until = std::max(until, state.finish(consumer));
      continue;
    }
    Copy& copy = copies_[to];
    if (copy.bytes < 0) {
      receivers_.push_back(to);
      copy = {0, edge, times != nullptr ? times->sent(edge) : finish, 0, 0};
    }
    copy.bytes = std::max(copy.bytes, graph.bytes(edge));
    copy.arrival = std::max(
        copy.arrival, times != nullptr ? times->arrival(edge) : finish + cost_.transfer_time(edge, home, to));
    copy.until = std::max(copy.until, state.finish(consumer));
  }
  for (const DeviceIndex to : receivers_) {
    Copy& copy = copies_[to];
    until = std::max(until, copy.arrival);
    live_->add_tensor(graph.node_count() + copy.edge, to, copy.bytes, copy.start,
                      std::max(copy.arrival, copy.until));
    copy.bytes = -1;
  }
  live_->add_tensor(node, home, graph.output_bytes(node), state.start(node), until);
}

Bytes ScheduleMemory::overflow(const ScheduleState& state, Bytes most) {
  const TaskGraph& graph = cost_.graph();
  const DeviceIndex devices = cost_.device_count();
  std::vector<Bytes> resident(devices, 0);
  for (NodeIndex node = 0; node < graph.node_count(); ++node)
    resident[state.device_of(node)] += graph.resident_bytes(node);
  const auto limit = [&](DeviceIndex device) { return cost_.machine().device(device).memory_limit; };
  Bytes sum = 0;
  for (DeviceIndex device = 0; device < devices; ++device)
    sum += std::max<Bytes>(0, resident[device] - limit(device));
  if (sum > most) return sum;
  copies_.resize(devices);
  if (!live_) live_.emplace(graph.node_count() + graph.edge_count(), devices);
  live_->begin_query();
  for (NodeIndex node = 0; node < graph.node_count(); ++node) add_outputs(state, node);
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

void ScheduleMemory::nodes_at_peak(const ScheduleState& state, std::vector<NodeIndex>& nodes) const {
  const TaskGraph& graph = cost_.graph();
  nodes.clear();
  const auto [device, when, excess] = worst_;
  if (excess <= 0) return;
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    const bool at_home = state.device_of(node) == device;
    const bool begun = (at_home ? state.start(node) : state.finish(node)) <= when;
    if (at_home && graph.resident_bytes(node) > 0) nodes.push_back(node);
    if (!begun || graph.output_bytes(node) == 0) continue;
    bool needed = false;
    for (const NodeIndex next : graph.successors(node)) {
      if (state.finish(next) <= when) continue;
      needed = true;
      if (state.device_of(next) == device && !at_home) nodes.push_back(next);
    }
    if (at_home && (needed || state.finish(node) > when)) nodes.push_back(node);
  }
}

}  // namespace convoy::partition
