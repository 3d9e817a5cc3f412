// Computes the times of a schedule again after a change of devices or of the order.
#include "partition/placement/schedule_state.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace convoy::partition {

ScheduleState::ScheduleState(const CostModel& cost, std::span<const DeviceIndex> device_of,
                             const Simulation& simulation)
    : cost_(cost),
      graph_(cost.graph()),
      same_speeds_(cost.same_speeds()),
      same_links_(cost.machine().same_links()),
      node_(device_of.size()),
      in_begin_(1, 0),
      order_(simulation.order),
      load_(cost.device_count(), 0) {
  const std::vector<Nanoseconds> bottom = bottom_levels(cost);
  in_begin_.reserve(device_of.size() + 1), in_edge_.reserve(graph_.edge_count());
  for (NodeIndex node = 0; node < graph_.node_count(); ++node) {
    node_[node] = {
        0, simulation.start[node], simulation.finish[node], 0, bottom[node], device_of[node], kNone, kNone,
        0};
    for (const EdgeIndex edge : graph_.in_edges(node))
      in_edge_.push_back({graph_.source(edge), edge, cost.transfer_time(edge)});
    in_begin_.push_back(static_cast<EdgeIndex>(in_edge_.size()));
    load_[device_of[node]] += cost.run_time(node, device_of[node]);
  }
  // Number the nodes (keys) by start, then by finish, then in topological order. Keys agree with
  // the order on each device: two nodes start at the same time there only if one has no duration.
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
  // In larger graphs, treat several tensors of one producer as independent. This is less exact but
  // faster.
  constexpr NodeIndex kMostExact = 5000;
  if (cost.machine().contention() || (!cost.transfers_independent() && graph_.node_count() <= kMostExact)) {
    contended_.emplace(cost, order_);
    contended_->replay(0, 0, std::numeric_limits<Nanoseconds>::max() / 2);
    copy_replayed_times();
    commit_replay();
  } else {
    // Compute all times again. They may differ from the simulation, which sends only the largest of
    // a producer's tensors to a device.
    for (const Place& place : sequence) {
      NodeState& state = node_[place.node];
      state.start = earliest_start(place.node);
      state.finish = state.start + cost.run_time(place.node, state.device);
    }
    for (auto place = sequence.rbegin(); place != sequence.rend(); ++place)
      node_[place->node].tail = tail_of(place->node);
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
  for (const InEdge& in : in_edges(node)) latest = std::max(latest, arrival(in, device));
  return latest;
}

Nanoseconds ScheduleState::earliest_start(NodeIndex node) const {
  const NodeState& state = node_[node];
  const Nanoseconds inputs = arrival(node, state.device);
  return state.previous == kNone ? inputs : std::max(inputs, node_[state.previous].finish);
}

Nanoseconds ScheduleState::estimate(NodeIndex node, DeviceIndex device) const {
  const Nanoseconds ready = arrival(node, device), time = cost_.run_time(node, device);
  // Find the node's neighbours on this device if it were inserted at the arrival of its inputs.
  const std::vector<NodeIndex>& order = order_[device];
  const auto after = std::partition_point(order.begin(), order.end(), [&](NodeIndex other) {
    return node_[other].start < ready || node_[other].key < node_[node].key;
  });
  Nanoseconds start = ready, tail = 0;
  auto before = after;
  while (before != order.begin() && *(before - 1) == node) --before;
  if (before != order.begin()) start = std::max(start, node_[*(before - 1)].finish);
  if (after != order.end()) tail = length(*after) + node_[*after].tail;
  return start + time + std::max(tail, tail_of_consumers(node, device));
}

std::vector<NodeIndex>::iterator ScheduleState::place_of(NodeIndex node) {
  std::vector<NodeIndex>& order = order_[node_[node].device];
  return std::lower_bound(order.begin(), order.end(), node, [&](NodeIndex a, NodeIndex b) {
    return node_[a].key != node_[b].key ? node_[a].key < node_[b].key : a < b;
  });
}

void ScheduleState::unlink(NodeIndex node) {
  order_[node_[node].device].erase(place_of(node));
  const NodeIndex before = node_[node].previous, after = node_[node].next;
  if (before != kNone) node_[before].next = after;
  if (after != kNone) node_[after].previous = before;
}

void ScheduleState::link(NodeIndex node) {
  std::vector<NodeIndex>& order = order_[node_[node].device];
  const auto place = place_of(node);
  const NodeIndex after = place != order.end() ? *place : kNone;
  const NodeIndex before = place != order.begin() ? *(place - 1) : kNone;
  order.insert(place, node);
  node_[node].previous = before, node_[node].next = after;
  if (before != kNone) node_[before].next = node;
  if (after != kNone) node_[after].previous = node;
}

void ScheduleState::queue(NodeIndex node, Direction direction) {
  if (node_[node].queued == pass_) return;
  node_[node].queued = pass_;
  const int sign = direction == Direction::kForward ? -1 : 1;
  queue_.add({sign * node_[node].key, sign * node});
}

void ScheduleState::queue_successors(NodeIndex node) {
  for (const NodeIndex next : graph_.successors(node)) queue(next);
}

void ScheduleState::begin_move() {
  ++pass_;
  work_ += work::kMove;
  queue_.clear();
  log_.clear();
  tails_to_update_.clear();
  moved_until_ = 0;
  replay_from_ = std::numeric_limits<Nanoseconds>::max();
  replay_until_ = 0;
}

bool ScheduleState::recompute(Nanoseconds limit) {
  if (contended_) return replay(limit);
  while (!queue_.empty()) {
    const NodeIndex node = take_from_queue();
    work_ += work::kRecompute;
    const Nanoseconds start = earliest_start(node), time = cost_.run_time(node, node_[node].device);
    const Nanoseconds finish = start + time;
    if (start == node_[node].start && finish == node_[node].finish) continue;
    if (start > limit - least_rest(node, time)) return false;
    record(node, false);
    node_[node].start = start, node_[node].finish = finish;
    queue_successors(node);
    if (node_[node].next != kNone) queue(node_[node].next);
  }
  return true;
}

void ScheduleState::set_device(NodeIndex node, DeviceIndex device) {
  load_[node_[node].device] -= cost_.run_time(node, node_[node].device);
  load_[device] += cost_.run_time(node, device);
  node_[node].device = device;
  if (contended_) contended_->set_device(node, device);
}

void ScheduleState::insert_into_order(NodeIndex node, DeviceIndex device) {
  set_device(node, device);
  link(node);
  moved_until_ = std::max(moved_until_, node_[node].key);
  tails_to_update_.push_back(node);
  if (contended_) {
    if (const NodeIndex next = node_[node].next; next != kNone) {
      replay_from_ = std::min(replay_from_, node_[next].start);
      replay_until_ = std::max(replay_until_, node_[next].start);
    }
    return;
  }
  queue(node);
  if (node_[node].next != kNone) queue(node_[node].next);
  queue_successors(node);
}

void ScheduleState::remove_from_order(NodeIndex node) {
  record(node, true);
  moved_until_ = std::max(moved_until_, node_[node].key);
  if (node_[node].previous != kNone) tails_to_update_.push_back(node_[node].previous);
  if (contended_)
    replay_from_inputs_of(node);
  else if (node_[node].next != kNone)
    queue(node_[node].next);
  unlink(node);
}

// Returns whether each device could run all its nodes within the limit after the move. Most moves
// of many nodes fail here, before they change the order of any device.
bool ScheduleState::loads_are_within(std::span<const Reassignment> nodes, Nanoseconds limit) {
  // Gives a device to the node, and returns the one that the node had.
  const auto shift = [&](NodeIndex node, DeviceIndex device) {
    load_[node_[node].device] -= cost_.run_time(node, node_[node].device);
    load_[device] += cost_.run_time(node, device);
    std::swap(node_[node].device, device);
    return device;
  };
  work_ += work::kPass * std::ssize(nodes);
  left_.clear();
  for (const auto& [node, device] : nodes) left_.push_back({node, shift(node, device)});
  const bool within = *std::max_element(load_.begin(), load_.end()) <= limit;
  for (auto moved = left_.rbegin(); moved != left_.rend(); ++moved) shift(moved->node, moved->device);
  return within;
}

ScheduleState::Move ScheduleState::move(std::span<const Reassignment> nodes, Nanoseconds limit) {
  begin_move();
  if (!loads_are_within(nodes, limit)) return {*this, false};
  for (const auto& [node, device] : nodes) {
    if (node_[node].device == device) continue;
    remove_from_order(node);
    insert_into_order(node, device);
  }
  return {*this, recompute(limit)};
}

// Chooses a key between those of the node's producers and consumers. Within these bounds, the node
// is inserted at the time when its inputs arrive on the device.
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

ScheduleState::Move ScheduleState::move_in_time(NodeIndex node, DeviceIndex device, Nanoseconds limit) {
  begin_move();
  const Reassignment only{node, device};
  if (!loads_are_within({&only, 1}, limit)) return {*this, false};
  remove_from_order(node);
  choose_key(node, device);
  insert_into_order(node, device);
  return {*this, recompute(limit)};
}

void ScheduleState::Move::commit() {
  if (state_->contended_)
    state_->commit_replay();
  else
    state_->update_tails();
  state_->log_.clear();
  state_ = nullptr;
}

void ScheduleState::Move::roll_back() {
  if (state_ != nullptr) state_->undo_move();
  state_ = nullptr;
}

void ScheduleState::undo_move() {
  queue_.clear();
  for (auto undo = log_.rbegin(); undo != log_.rend(); ++undo) {
    if (undo->moved) {
      unlink(undo->node);
      set_device(undo->node, undo->device);
      node_[undo->node].key = undo->key;
      link(undo->node);
    }
    node_[undo->node].start = undo->start, node_[undo->node].finish = undo->finish;
  }
  log_.clear();
  if (replayed_) undo_replay();
}

}  // namespace convoy::partition
