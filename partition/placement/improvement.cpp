// The local search around the critical path: what is kept and for how long it goes on. Its moves are in local_search_moves.cpp.
#include "partition/placement/improvement.h"

#include <algorithm>

#include "partition/placement/local_search.h"

namespace convoy::partition {

bool LocalSearch::out_of_time() {
  if (recorded_ <= limits_.good_enough) return true;
  return counts_.tried >= limits_.moves || Clock::now() >= limits_.deadline;
}

// The threshold falls from 0.2 % of the makespan to nothing over the time given.
void LocalSearch::refresh() {
  double used = static_cast<double>(counts_.tried) / static_cast<double>(limits_.moves);
  if (limits_.deadline != Clock::time_point::max())
    used = std::max(used, std::chrono::duration<double>(Clock::now() - begin_) / (limits_.deadline - begin_));
  constexpr double kFirstThreshold = 2e-3;
  threshold_ =
      static_cast<Nanoseconds>(kFirstThreshold * std::max(0.0, 0.8 - used) * static_cast<double>(recorded_));
  state_->critical_path(path_, random_.below(2) == 0);
  // Tails cost a pass over the graph: refresh them when the moves have cost as much.
  if (!tails_known_ || state_->nodes_recomputed() - recomputed_at_tails_ > 2 * graph_.node_count()) {
    state_->compute_tails();
    tails_known_ = true;
    recomputed_at_tails_ = state_->nodes_recomputed();
  }
  since_refresh_ = 0;
  stale_ = false;
}

void LocalSearch::keep_best() {
  if (!unsaved_) return;
  unsaved_ = false;
  best_ = state_->placement();
}

// A shorter schedule that memory forbids: now and then a step through it leads to one that is allowed.
void LocalSearch::visit_forbidden(Nanoseconds makespan) {
  constexpr std::int64_t kOneIn = 4;
  if (unsaved_ || random_.below(kOneIn) != 0) {
    state_->rollback();
    return keep_best();
  }
  state_->commit();
  stale_ = true;
  current_ = makespan;
}

void LocalSearch::decide(bool finished) {
  ++since_best_;
  if (!finished) return state_->rollback();
  const Nanoseconds makespan = state_->makespan();
  if (makespan > limit()) return state_->rollback();
  if (makespan < recorded_ && limits_.accept && !limits_.accept(state_->placement()))
    return visit_forbidden(makespan);
  if (makespan > recorded_ && unsaved_) {
    // Leaving the best state for a worse one: remember it first.
    state_->rollback();
    keep_best();
    return;
  }
  state_->commit();
  ++counts_.accepted;
  stale_ = stale_ || makespan != current_;
  current_ = makespan;
  if (current_ < recorded_) {
    recorded_ = current_;
    unsaved_ = true;
    since_best_ = 0;
  }
}

void LocalSearch::restart_from(std::span<const DeviceIndex> device_of, const Simulation& simulation) {
  counts_.nodes_recomputed += state_->nodes_recomputed();
  state_.emplace(cost_, std::vector<DeviceIndex>(device_of.begin(), device_of.end()), simulation);
  current_ = state_->makespan();
  since_best_ = recomputed_at_tails_ = recomputed_at_listing_ = 0;
  stale_ = true;
  tails_known_ = false;
}

void LocalSearch::return_to_best() {
  keep_best();
  restart_from(best_.device_of, simulate(cost_, best_, Detail::kTimes));
}

// Moves keep orders as far as they can; now and then list scheduling finds a better order for the same
// devices.
void LocalSearch::list_again() {
  recomputed_at_listing_ = state_->nodes_recomputed();
  Placement listed{cost_.device_count(), state_->devices(), {}};
  const Simulation simulation = simulate(cost_, listed, Detail::kTimes);
  if (simulation.makespan >= current_) return;
  listed.order = simulation.order;
  if (limits_.accept && !limits_.accept(listed)) return;
  keep_best();
  restart_from(listed.device_of, simulation);
  if (current_ >= recorded_) return;
  recorded_ = current_;
  unsaved_ = true;
}

Placement LocalSearch::run(ImprovementCounts* counts) {
  constexpr std::int64_t kRefreshEvery = 200, kPatience = 2000, kForbiddenPatience = 300;
  if (cost_.device_count() > 1 && graph_.node_count() > 0)
    while (!out_of_time()) {
      if (since_best_ > (current_ < recorded_ ? kForbiddenPatience : kPatience)) {
        if (current_ != recorded_) return_to_best();
        kick();
      }
      if (state_->nodes_recomputed() - recomputed_at_listing_ > 10 * graph_.node_count()) list_again();
      if (stale_ || since_refresh_ >= kRefreshEvery) refresh();
      ++since_refresh_;
      ++since_best_;
      ++counts_
            .tried;  // also what pins or groups refuse: where they leave nothing to move, the limit still ends it
      step();
    }
  keep_best();
  counts_.nodes_recomputed += state_->nodes_recomputed();
  if (counts != nullptr) *counts = counts_;
  return best_;
}

Placement improve(const CostModel& cost, const Units& units, const Placement& placement,
                  const ImprovementLimits& limits, ImprovementCounts* counts) {
  Placement result = LocalSearch(cost, units, placement, limits).run(counts);
  // The search neglects contention; the simulator does not.
  if (!cost.transfers_independent() &&
      simulate(cost, result, Detail::kTimes).makespan > simulate(cost, placement, Detail::kTimes).makespan)
    return placement;
  if (limits.accept && !limits.accept(result)) return placement;
  return result;
}

}  // namespace convoy::partition
