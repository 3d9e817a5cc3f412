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
      in_begin_(1, 0),
      slot_(graph_.edge_count()),
      arrival_(graph_.edge_count(), 0),
      total_(devices_, 0),
      position_(graph_.node_count(), kNotEnded),
      device_(devices_),
      slowest_(devices_, kNone),
      sent_(devices_),
      rest_(graph_.node_count(), 0),
      ended_in_replay_(graph_.node_count(), 0) {
  producer_.reserve(graph_.edge_count()), in_begin_.reserve(graph_.node_count() + 1);
  for (NodeIndex node = 0; node < graph_.node_count(); ++node) {
    for (const EdgeIndex edge : graph_.in_edges(node)) {
      slot_[edge] = static_cast<EdgeIndex>(producer_.size());
      producer_.push_back(graph_.source(edge));
    }
    in_begin_.push_back(static_cast<EdgeIndex>(producer_.size()));
  }
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
  new_snapshots_.push_back({time, kept_ended_ + static_cast<std::int32_t>(new_sequence_.size())});
  new_snapshot_devices_.insert(new_snapshot_devices_.end(), device_.begin(), device_.end());
}

// Restores the state of the devices from the last snapshot before `from`.
void ContendedTimes::restore(Nanoseconds from) {
  const auto later = std::partition_point(snapshots_.begin(), snapshots_.end(),
                                          [&](const Snapshot& snapshot) { return snapshot.time < from; });
  kept_snapshots_ = static_cast<std::size_t>(later - snapshots_.begin());
  kept_ended_ = kept_snapshots_ > 0 ? snapshots_[kept_snapshots_ - 1].ended : 0;
  ++replay_;
  new_sequence_.clear(), new_snapshots_.clear(), new_snapshot_devices_.clear();
  old_times_.clear(), old_transfers_.clear();
  if (kept_snapshots_ == 0) {
    device_.assign(device_.size(), {});
    for (DeviceIndex device = 0; device < devices_; ++device)
      device_[device].next_event = kNever, find_head(device);
    return;
  }
  const Nanoseconds now = snapshots_[kept_snapshots_ - 1].time;
  std::copy_n(snapshot_devices_.begin() + static_cast<std::ptrdiff_t>((kept_snapshots_ - 1) * device_.size()),
              devices_, device_.begin());
  for (DeviceIndex index = 0; index < devices_; ++index) {
    DeviceState& device = device_[index];
    // A snapshot also contains nodes that are chosen but wait for their inputs. Undo these choices,
    // because the replay makes them again.
    if (device.running != kNone && times_[device.running].start > now) {
      --device.next;
      device.done -= times_[device.running].finish - times_[device.running].start;
      device.free_at = device.next > 0 ? times_[orders_[index][device.next - 1]].finish : 0;
      device.running = kNone;
    }
    if (device.running == kNone) device.next_event = kNever, find_head(index);
  }
}

// Finds the next node in the order of the device, how many of its producers have not ended, and
// when the inputs that were already sent arrive.
void ContendedTimes::find_head(DeviceIndex index) {
  DeviceState& device = device_[index];
  device.dirty = true;
  device.missing = 0, device.ready = 0;
  device.head = device.next < std::ssize(orders_[index]) ? orders_[index][device.next] : kNone;
  if (device.head == kNone) return;
  for (EdgeIndex slot = in_begin_[device.head]; slot < in_begin_[device.head + 1]; ++slot) {
    if (ended(producer_[slot]))
      device.ready = std::max(device.ready, arrival_[slot]);
    else
      ++device.missing;
  }
}

// Starts the device's next node if all its producers have ended. Returns false if the makespan
// would then exceed the limit, certainly or probably (see replay()).
bool ContendedTimes::try_start(DeviceIndex index, Nanoseconds now) {
  DeviceState& device = device_[index];
  device.dirty = false;
  const NodeIndex node = device.head;
  if (node == kNone || device.missing > 0) return true;
  const Nanoseconds begin = std::max(device.free_at, device.ready);
  const Nanoseconds time = cost_.run_time(node, index);
  // Do not start a node with no duration early. It would end at once, but other nodes that end at
  // the same time must come first.
  if (time == 0 && begin > now) {
    device.next_event = begin;
    return true;
  }
  if (begin + (total_[index] - device.done) > limit_) return false;
  NodeTimes& times = times_[node];
  if (times.start > unchanged_from_ && begin > limit_ - rest_[node]) return false;
  ++device.next;
  device.done += time;
  device.running = node;
  device.head = kNone;
  device.free_at = device.next_event = begin + time;
  old_times_.push_back({node, times});
  times = {begin, begin + time};
  return true;
}

// Finds the edge with the longest transfer to each device that receives the node's output.
void ContendedTimes::find_slowest_edges(NodeIndex node, DeviceIndex home) {
  receivers_.clear();
  for (EdgeIndex edge = graph_.out_begin(node); edge < graph_.out_end(node); ++edge) {
    const DeviceIndex to = device_of_[graph_.target(edge)];
    if (to == home) continue;
    if (slowest_[to] == kNone)
      slowest_[to] = edge, receivers_.push_back(to);
    else if (cost_.transfer_time(edge, home, to) > cost_.transfer_time(slowest_[to], home, to))
      slowest_[to] = edge;
  }
}

void ContendedTimes::send(NodeIndex node, DeviceIndex home, Nanoseconds now) {
  find_slowest_edges(node, home);
  DeviceState& sender = device_[home];
  for (const DeviceIndex to : receivers_) {
    const EdgeIndex edge = std::exchange(slowest_[to], kNone);
    DeviceState& receiver = device_[to];
    EdgeTimes times{now, kNone};
    if (contention_) {
      times.start = std::max({now, sender.sends_until, receiver.receives_until});
      if (times.start > now)
        times.waited_for =
            sender.sends_until >= receiver.receives_until ? sender.last_sent : receiver.last_received;
      sender.sends_until = receiver.receives_until = times.start + cost_.link_time(edge, home, to);
      sender.last_sent = receiver.last_received = edge;
    }
    sent_[to] = {times, times.start + cost_.transfer_time(edge, home, to)};
  }
  sent_[home] = {{}, now};
}

// Records for all consumers when the node's tensors arrive.
void ContendedTimes::deliver(NodeIndex node, DeviceIndex home) {
  for (EdgeIndex edge = graph_.out_begin(node); edge < graph_.out_end(node); ++edge) {
    const NodeIndex next = graph_.target(edge);
    const DeviceIndex to = device_of_[next];
    Nanoseconds& arrival = arrival_[slot_[edge]];
    old_transfers_.push_back({arrival, transfer_[edge]});
    arrival = sent_[to].arrival;
    if (to == home) continue;
    transfer_[edge] = sent_[to].times;
    DeviceState& device = device_[to];
    if (device.head != next) continue;
    device.ready = std::max(device.ready, arrival);
    if (--device.missing == 0) device.dirty = true;
  }
}

void ContendedTimes::end(DeviceIndex index, Nanoseconds now) {
  DeviceState& device = device_[index];
  const NodeIndex node = std::exchange(device.running, kNone);
  device.next_event = kNever;
  ended_in_replay_[node] = replay_;
  new_sequence_.push_back(node);
  send(node, index, now);
  deliver(node, index);
}

bool ContendedTimes::replay(Nanoseconds from, Nanoseconds unchanged_from, Nanoseconds limit) {
  unchanged_from_ = unchanged_from, limit_ = limit;
  restore(from);
  const std::size_t nodes = static_cast<std::size_t>(graph_.node_count() - kept_ended_);
  std::size_t next_snapshot = every_;
  for (Nanoseconds now = kept_snapshots_ > 0 ? snapshots_[kept_snapshots_ - 1].time : 0;
       new_sequence_.size() < nodes;) {
    Nanoseconds next = kNever;
    for (DeviceIndex index = 0; index < devices_; ++index) {
      DeviceState& device = device_[index];
      if (device.running == kNone && device.head == kNone) find_head(index);
      if (device.dirty && !try_start(index, now)) return false;
      next = std::min(next, device.next_event);
    }
    if (new_sequence_.size() >= next_snapshot) snapshot(now), next_snapshot = new_sequence_.size() + every_;
    if (next == kNever) return false;  // deadlock: each device waits for the next node of another
    now = next;
    for (DeviceIndex index = 0; index < devices_; ++index) {
      DeviceState& device = device_[index];
      if (device.next_event != now) continue;
      if (device.running != kNone) end(index, now);
      device.dirty = true;
    }
  }
  return true;
}

void ContendedTimes::commit() {
  sequence_.resize(kept_ended_);
  for (const NodeIndex node : new_sequence_) {
    position_[node] = static_cast<std::int32_t>(sequence_.size());
    sequence_.push_back(node);
  }
  snapshots_.resize(kept_snapshots_);
  snapshots_.insert(snapshots_.end(), new_snapshots_.begin(), new_snapshots_.end());
  snapshot_devices_.resize(kept_snapshots_ * device_.size());
  snapshot_devices_.insert(snapshot_devices_.end(), new_snapshot_devices_.begin(),
                           new_snapshot_devices_.end());
  compute_rest();
}

void ContendedTimes::undo() {
  for (const OldTimes& old : old_times_) times_[old.node] = old.times;
  auto transfers = old_transfers_.begin();
  for (const NodeIndex node : new_sequence_)
    for (EdgeIndex edge = graph_.out_begin(node); edge < graph_.out_end(node); ++edge, ++transfers)
      arrival_[slot_[edge]] = transfers->arrival, transfer_[edge] = transfers->times;
}

// Computes rest_, the time from each node's start to the end of the schedule, going backwards from
// the last node. A transfer delays its consumers and the next transfers of the two devices.
void ContendedTimes::compute_rest() {
  std::vector<Nanoseconds> after_node(devices_, 0), after_send(devices_, 0), after_receive(devices_, 0);
  std::vector<Nanoseconds> consumers(devices_, 0);
  for (auto last = sequence_.rbegin(); last != sequence_.rend(); ++last) {
    const NodeIndex node = *last;
    const DeviceIndex home = device_of_[node];
    find_slowest_edges(node, home);
    consumers[home] = after_node[home];
    for (EdgeIndex edge = graph_.out_begin(node); edge < graph_.out_end(node); ++edge) {
      const NodeIndex next = graph_.target(edge);
      Nanoseconds& longest = consumers[device_of_[next]];
      longest = std::max(longest, rest_[next]);
    }
    Nanoseconds rest = std::exchange(consumers[home], 0);
    for (auto to = receivers_.rbegin(); to != receivers_.rend(); ++to) {
      const EdgeIndex edge = std::exchange(slowest_[*to], kNone);
      Nanoseconds sent = cost_.transfer_time(edge, home, *to) + std::exchange(consumers[*to], 0);
      if (contention_) {
        sent =
            std::max(sent, cost_.link_time(edge, home, *to) + std::max(after_send[home], after_receive[*to]));
        after_send[home] = after_receive[*to] = sent;
      }
      rest = std::max(rest, sent);
    }
    rest_[node] = after_node[home] = rest + cost_.run_time(node, home);
  }
}

}  // namespace convoy::partition
