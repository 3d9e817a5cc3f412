// Schedules whose transfers depend on each other: contended_times.h follows them.
#include <algorithm>

#include "partition/placement/schedule_state.h"

namespace convoy::partition {

// The node is about to leave its place: its producers' transfers change, and its device from its
// start on.
void ScheduleState::felt_from(NodeIndex node) {
  from_ = std::min(from_, node_[node].start);
  for (const InEdge& in : in_edges(node)) from_ = std::min(from_, node_[in.producer].finish);
}

void ScheduleState::copy_followed_times() {
  for (const NodeIndex node : contended_->followed())
    node_[node].start = contended_->start(node), node_[node].finish = contended_->finish(node);
}

bool ScheduleState::follow(Nanoseconds limit) {
  followed_ = true;
  const bool finished = contended_->follow(from_, limit, bottom_);
  constexpr std::int64_t kCheaper = 8;  // in a row, than node by node
  recomputed_ += std::ssize(contended_->followed()) / kCheaper;
  if (finished) copy_followed_times();
  return finished;
}

// From the node back over the transfer that it waited for, and the transfers that that one waited
// for.
void ScheduleState::waiting_path(NodeIndex node, std::vector<NodeIndex>& path) const {
  for (const InEdge& in : in_edges(node)) {
    if (node_[in.producer].device == node_[node].device || contended_->arrival(in.edge) != node_[node].start)
      continue;
    for (EdgeIndex edge = contended_->waited_for(in.edge); edge != kNone; edge = contended_->waited_for(edge))
      path.push_back(graph_.target(edge)), path.push_back(graph_.source(edge));
    return;
  }
}

}  // namespace convoy::partition
