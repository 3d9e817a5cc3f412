// The schedules whose transfers depend on each other: contended_times.h computes their times.
#include <algorithm>

#include "partition/placement/schedule_state.h"

namespace convoy::partition {

// Called before the node leaves its place, which changes the transfers of its producers and, from
// the node's start on, its device.
void ScheduleState::replay_from_inputs_of(NodeIndex node) {
  replay_from_ = std::min(replay_from_, node_[node].start);
  for (const InEdge& in : in_edges(node)) replay_from_ = std::min(replay_from_, node_[in.producer].finish);
}

void ScheduleState::copy_replayed_times() {
  for (const NodeIndex node : contended_->replayed())
    node_[node].start = contended_->start(node), node_[node].finish = contended_->finish(node);
}

bool ScheduleState::replay(Nanoseconds limit) {
  replayed_ = true;
  const bool finished = contended_->replay(replay_from_, limit, bottom_);
  constexpr std::int64_t kCheaper = 8;  // a replayed node costs this much less than a recomputed one
  recomputed_ += std::ssize(contended_->replayed()) / kCheaper;
  if (finished) copy_replayed_times();
  return finished;
}

}  // namespace convoy::partition
