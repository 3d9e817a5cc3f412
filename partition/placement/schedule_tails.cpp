// The tail of a node is the longest path from its end to the end of the schedule. During a move,
// the new end of a node plus its tail is a lower bound on the makespan, even before all times are
// computed.
#include <algorithm>

#include "partition/placement/schedule_state.h"

namespace convoy::partition {

Nanoseconds ScheduleState::tail_of_consumers(NodeIndex node, DeviceIndex device) const {
  Nanoseconds longest = 0;
  for (EdgeIndex edge = graph_.out_begin(node); edge < graph_.out_end(node); ++edge) {
    const NodeState& next = node_[graph_.target(edge)];
    longest = std::max(longest,
                       cost_.transfer_time(edge, device, next.device) + next.finish - next.start + next.tail);
  }
  return longest;
}

Nanoseconds ScheduleState::tail_of(NodeIndex node) const {
  const NodeState& state = node_[node];
  const Nanoseconds tail = tail_of_consumers(node, state.device);
  return state.next == kNone ? tail : std::max(tail, length(state.next) + node_[state.next].tail);
}

// Visits nodes by descending key (schedule_state.h), so that the tails of all later nodes are
// already computed.
void ScheduleState::update_tails() {
  ++pass_;
  queue_.clear();
  const auto queue_earlier = [&](NodeIndex node) {
    for (const InEdge& in : in_edges(node)) queue(in.producer, Direction::kBackward);
    if (node_[node].previous != kNone) queue(node_[node].previous, Direction::kBackward);
  };
  for (const NodeIndex node : tails_to_update_) queue(node, Direction::kBackward);
  for (const Undo& undo : log_)
    if (undo.moved) queue_earlier(undo.node);
  while (!queue_.empty()) {
    const NodeIndex node = take_from_queue();
    work_ += work::kRecompute;
    const Nanoseconds tail = tail_of(node);
    if (tail == node_[node].tail) continue;
    node_[node].tail = tail;
    queue_earlier(node);
  }
}

// The tail of a node depends only on nodes with larger keys. It is still valid if the move changes
// none of these.
Nanoseconds ScheduleState::least_rest(NodeIndex node, Nanoseconds run_time) const {
  const NodeState& state = node_[node];
  if (state.key > moved_until_) return run_time + state.tail;
  return same_speeds_ ? state.bottom : run_time;
}

}  // namespace convoy::partition
