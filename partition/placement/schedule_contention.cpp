// The part of ScheduleState for transfers that depend on each other. contended_times.h computes
// their times.
#include <algorithm>

#include "partition/placement/schedule_state.h"

namespace convoy::partition {

// Called before the node leaves its device. Sets replay_from_ to the first event that can change:
// the node's start, at which its device is free instead, or the end of a producer, whose transfers
// change.
void ScheduleState::replay_from_inputs_of(NodeIndex node) {
  replay_from_ = std::min(replay_from_, node_[node].start);
  replay_until_ = std::max(replay_until_, node_[node].finish);
  for (const InEdge& in : in_edges(node)) replay_from_ = std::min(replay_from_, node_[in.producer].finish);
}

void ScheduleState::copy_replayed_times() {
  for (const NodeIndex node : contended_->replayed())
    node_[node].start = contended_->start(node), node_[node].finish = contended_->finish(node);
}

bool ScheduleState::replay(Nanoseconds limit) {
  replayed_ = true;
  finished_replay_ = contended_->replay(replay_from_, replay_until_, limit);
  work_ += work::kReplay * std::ssize(contended_->replayed());
  if (finished_replay_) copy_replayed_times();
  return finished_replay_;
}

void ScheduleState::commit_replay() {
  replayed_ = false;
  contended_->commit();
  work_ += work::kPass * graph_.node_count();
  for (NodeIndex node = 0; node < graph_.node_count(); ++node)
    node_[node].tail = contended_->rest(node) - length(node);
}

void ScheduleState::undo_replay() {
  replayed_ = false;
  contended_->undo();
  if (finished_replay_) copy_replayed_times();
}

}  // namespace convoy::partition
