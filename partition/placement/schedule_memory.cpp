// Memory of a schedule under change: the simulator's account (memory_use.cpp) of the current times,
// without its curves.
#include <algorithm>

#include "partition/placement/schedule_state.h"

namespace convoy::partition {
namespace {

// At one instant, what ended is freed first, then what starts is allocated, then what lasted no
// time is freed.
constexpr std::int64_t kKinds = 4, kFree = 0, kAllocate = 1, kFreeInstant = 2;

}  // namespace

void ScheduleState::live(DeviceIndex device, Bytes bytes, Nanoseconds from, Nanoseconds until) const {
  if (bytes == 0 || cost_.machine().device(device).memory_limit == kUnlimited) return;
  std::vector<std::pair<std::int64_t, Bytes>>& changes = changes_[device];
  changes.emplace_back(from * kKinds + kAllocate, bytes);
  changes.emplace_back(until * kKinds + (until > from ? kFree : kFreeInstant), -bytes);
}

// The node's output at home, and its copies where consumers are.
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
      copy = {0, contended_ ? contended_->sent(edge) : node_[node].finish, 0, 0};
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
    live(to, copy.bytes, copy.start, std::max(copy.arrival, copy.until));
    copy.bytes = -1;
  }
  live(home, graph_.output_bytes(node), node_[node].start, until);
}

Bytes ScheduleState::overflow(Bytes most) const {
  const DeviceIndex devices = cost_.device_count();
  changes_.resize(devices), copies_.resize(devices);
  std::vector<Bytes> resident(devices, 0);
  for (const NodeState& state : node_)
    resident[state.device] += graph_.resident_bytes(static_cast<NodeIndex>(&state - node_.data()));
  Bytes sum = 0;
  for (DeviceIndex device = 0; device < devices; ++device)
    sum += std::max<Bytes>(0, resident[device] - cost_.machine().device(device).memory_limit);
  if (sum > most) return sum;
  for (auto& changes : changes_) changes.clear();
  for (NodeIndex node = 0; node < graph_.node_count(); ++node) add_outputs(node);
  sum = 0;
  for (DeviceIndex device = 0; device < devices; ++device) {
    std::sort(changes_[device].begin(), changes_[device].end());
    Bytes now = resident[device], peak = now;
    for (const auto& [when, bytes] : changes_[device]) peak = std::max(peak, now += bytes);
    sum += std::max<Bytes>(0, peak - cost_.machine().device(device).memory_limit);
  }
  return sum;
}

}  // namespace convoy::partition
