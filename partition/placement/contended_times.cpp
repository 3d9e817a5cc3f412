#include "partition/placement/contended_times.h"

#include <algorithm>
#include <limits>

namespace convoy::partition {
namespace {

constexpr Nanoseconds kNever = std::numeric_limits<Nanoseconds>::max();
constexpr std::int32_t kNotEnded = std::numeric_limits<std::int32_t>::max();

}  // namespace

ContendedTimes::ContendedTimes(const CostModel& cost, const Orders& orders)
    : cost_(cost),
      graph_(cost.graph()),
      orders_(orders),
      devices_(cost.device_count()),
      contention_(cost.machine().contention()),
      every_(32),
      device_of_(graph_.node_count(), 0),
      times_(graph_.node_count()),
      transfer_(graph_.edge_count()),
      total_(devices_, 0),
      position_(graph_.node_count(), kNotEnded),
      device_(devices_),
      slowest_(devices_, kNone) {
  for (DeviceIndex device = 0; device < devices_; ++device)
    for (const NodeIndex node : orders[device]) {
      device_of_[node] = device;
      total_[device] += cost.run_time(node, device);
    }
}

void ContendedTimes::set_device(NodeIndex node, DeviceIndex device) {
  total_[device_of_[node]] -= cost_.run_time(node, device_of_[node]);
  total_[device] += cost_.run_time(node, device);
  device_of_[node] = device;
}

void ContendedTimes::snapshot(Nanoseconds time) {
  snapshots_.push_back({time, ended_});
  snapshot_devices_.insert(snapshot_devices_.end(), device_.begin(), device_.end());
}

// Restores the last snapshot whose events are all before `from`. Keeps the later data for undo().
void ContendedTimes::restore(Nanoseconds from) {
  const auto later = std::partition_point(snapshots_.begin(), snapshots_.end(),
                                          [&](const Snapshot& snapshot) { return snapshot.time < from; });
  kept_snapshots_ = static_cast<std::size_t>(later - snapshots_.begin());
  kept_ended_ = kept_snapshots_ > 0 ? snapshots_[kept_snapshots_ - 1].ended : 0;
  old_snapshots_.assign(later, snapshots_.end());
  old_snapshot_devices_.assign(
      snapshot_devices_.begin() + static_cast<std::ptrdiff_t>(kept_snapshots_ * device_.size()),
      snapshot_devices_.end());
  snapshots_.resize(kept_snapshots_);
  snapshot_devices_.resize(kept_snapshots_ * device_.size());
  old_sequence_.assign(sequence_.begin() + kept_ended_, sequence_.end());
  sequence_.resize(kept_ended_);
  old_times_.clear(), old_transfers_.clear();
  for (const NodeIndex node : old_sequence_) {
    position_[node] = kNotEnded;
    old_times_.push_back(times_[node]);
    old_transfers_.insert(old_transfers_.end(), transfer_.begin() + graph_.out_begin(node),
                          transfer_.begin() + graph_.out_end(node));
  }
  ended_ = kept_ended_;
  if (kept_snapshots_ == 0) {
    device_.assign(device_.size(), {});
    for (DeviceIndex device = 0; device < devices_; ++device)
      device_[device].next_event = kNever, head_changed(device);
    return;
  }
  const Nanoseconds now = snapshots_[kept_snapshots_ - 1].time;
  std::copy(snapshot_devices_.end() - devices_, snapshot_devices_.end(), device_.begin());
  for (DeviceIndex index = 0; index < devices_; ++index) {
    DeviceState& device = device_[index];
    // A node that was to start later has not started yet at the snapshot.
    if (device.running != kNone && times_[device.running].start > now) {
      --device.next;
      device.done -= times_[device.running].finish - times_[device.running].start;
      device.free_at = device.next > 0 ? times_[orders_[index][device.next - 1]].finish : 0;
      device.running = kNone;
    }
    if (device.running == kNone) device.next_event = kNever, head_changed(index);
  }
}

// Counts the producers of the device's next node that have not ended.
void ContendedTimes::head_changed(DeviceIndex index) {
  DeviceState& device = device_[index];
  device.dirty = true;
  device.missing = 0;
  if (device.next == std::ssize(orders_[index])) return;
  for (const EdgeIndex edge : graph_.in_edges(orders_[index][device.next]))
    if (!ended(graph_.source(edge))) ++device.missing;
}

// Returns false if the start of the node, or the work left for its device, exceeds the limit.
bool ContendedTimes::try_start(DeviceIndex index, Nanoseconds now, Nanoseconds limit,
                               std::span<const Nanoseconds> bottom) {
  DeviceState& device = device_[index];
  device.dirty = false;
  if (device.running != kNone || device.missing > 0 || device.next == std::ssize(orders_[index])) return true;
  const NodeIndex node = orders_[index][device.next];
  Nanoseconds begin = device.free_at;
  for (const EdgeIndex edge : graph_.in_edges(node)) {
    const NodeIndex producer = graph_.source(edge);
    begin =
        std::max(begin, device_of_[producer] == index ? times_[producer].finish : transfer_[edge].arrival);
  }
  const Nanoseconds time = cost_.run_time(node, index);
  // A node with no duration ends after all others that end when it starts.
  if (time == 0 && begin > now) {
    device.next_event = begin;
    return true;
  }
  if (begin + (total_[index] - device.done) > limit || (!bottom.empty() && begin > limit - bottom[node]))
    return false;
  ++device.next;
  device.done += time;
  device.running = node;
  device.free_at = device.next_event = begin + time;
  times_[node] = {begin, begin + time};
  return true;
}

void ContendedTimes::send(NodeIndex node, DeviceIndex home, Nanoseconds now) {
  receivers_.clear();
  const EdgeIndex first = graph_.out_begin(node), last = graph_.out_end(node);
  for (EdgeIndex edge = first; edge < last; ++edge) {
    const DeviceIndex to = device_of_[graph_.target(edge)];
    if (to == home) continue;
    if (slowest_[to] == kNone)
      slowest_[to] = edge, receivers_.push_back(to);
    else if (cost_.transfer_time(edge, home, to) > cost_.transfer_time(slowest_[to], home, to))
      slowest_[to] = edge;
  }
  DeviceState& sender = device_[home];
  for (const DeviceIndex to : receivers_) {
    const EdgeIndex edge = std::exchange(slowest_[to], kNone);
    DeviceState& receiver = device_[to];
    EdgeTimes times;
    times.start = now;
    if (contention_) {
      times.start = std::max({now, sender.sends_until, receiver.receives_until});
      if (times.start > now)
        times.waited_for =
            sender.sends_until >= receiver.receives_until ? sender.last_sent : receiver.last_received;
      sender.sends_until = receiver.receives_until = times.start + cost_.link_time(edge, home, to);
      sender.last_sent = receiver.last_received = edge;
    }
    times.arrival = times.start + cost_.transfer_time(edge, home, to);
    for (EdgeIndex other = first; other < last; ++other)
      if (device_of_[graph_.target(other)] == to) transfer_[other] = times;
  }
}

void ContendedTimes::end(DeviceIndex index, Nanoseconds now) {
  DeviceState& device = device_[index];
  const NodeIndex node = std::exchange(device.running, kNone);
  device.next_event = kNever;
  position_[node] = ended_++;
  sequence_.push_back(node);
  send(node, index, now);
  for (const NodeIndex next : graph_.successors(node)) {
    const DeviceIndex at = device_of_[next];
    DeviceState& other = device_[at];
    if (at == index || other.running != kNone || other.next == std::ssize(orders_[at]) ||
        orders_[at][other.next] != next)
      continue;
    if (--other.missing == 0) other.dirty = true;
  }
}

bool ContendedTimes::replay(Nanoseconds from, Nanoseconds limit, std::span<const Nanoseconds> bottom) {
  restore(from);
  std::int32_t next_snapshot = ended_ + every_;
  const NodeIndex nodes = graph_.node_count();
  for (Nanoseconds now = kept_snapshots_ > 0 ? snapshots_.back().time : 0; ended_ < nodes;) {
    for (DeviceIndex index = 0; index < devices_; ++index)
      if (device_[index].dirty && !try_start(index, now, limit, bottom)) return false;
    if (ended_ >= next_snapshot) snapshot(now), next_snapshot = ended_ + every_;
    now = kNever;
    for (const DeviceState& device : device_) now = std::min(now, device.next_event);
    if (now == kNever) return false;  // the orders wait for each other
    for (DeviceIndex index = 0; index < devices_; ++index) {
      DeviceState& device = device_[index];
      if (device.next_event != now) continue;
      if (device.running != kNone) end(index, now);
      device.dirty = true;
    }
    for (DeviceIndex index = 0; index < devices_; ++index)
      if (device_[index].dirty && device_[index].running == kNone) head_changed(index);
  }
  return true;
}

void ContendedTimes::undo() {
  for (std::size_t at = kept_ended_; at < sequence_.size(); ++at) position_[sequence_[at]] = kNotEnded;
  sequence_.resize(kept_ended_);
  sequence_.insert(sequence_.end(), old_sequence_.begin(), old_sequence_.end());
  auto transfers = old_transfers_.begin();
  for (std::size_t at = 0; at < old_sequence_.size(); ++at) {
    const NodeIndex node = old_sequence_[at];
    position_[node] = kept_ended_ + static_cast<std::int32_t>(at);
    times_[node] = old_times_[at];
    std::copy_n(transfers, graph_.out_degree(node), transfer_.begin() + graph_.out_begin(node));
    transfers += graph_.out_degree(node);
  }
  ended_ = static_cast<std::int32_t>(sequence_.size());
  snapshots_.resize(kept_snapshots_);
  snapshots_.insert(snapshots_.end(), old_snapshots_.begin(), old_snapshots_.end());
  snapshot_devices_.resize(kept_snapshots_ * device_.size());
  snapshot_devices_.insert(snapshot_devices_.end(), old_snapshot_devices_.begin(),
                           old_snapshot_devices_.end());
}

}  // namespace convoy::partition
