// The functions of ScheduleState for transfers that depend on each other. Their times come from
// contended_times.h.
#include <algorithm>

#include "partition/placement/schedule_state.h"

namespace convoy::partition {

// Called before the node leaves its device. Lowers replay_from_ to the time of the first event that
// can change. This is the node's start or the end of one of its producers, whose transfers change,
// whichever is earliest. Raises replay_until_ to the node's end.
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
