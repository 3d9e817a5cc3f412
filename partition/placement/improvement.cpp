// The local search around the critical path: what is kept and for how long it goes on. Its moves
// are in local_search_moves.cpp.
#include "partition/placement/improvement.h"

#include <algorithm>
#include <cmath>

#include "partition/memory/overflow.h"
#include "partition/placement/local_search.h"

namespace convoy::partition {
namespace {

// Far enough below the largest time for any sum of a schedule.
constexpr Nanoseconds kNoLimit = std::numeric_limits<Nanoseconds>::max() / 2;

}  // namespace

bool LocalSearch::out_of_time() {
  if (recorded_.overflow == 0 && recorded_.makespan <= limits_.good_enough) return true;
  return counts_.tried >= limits_.moves || Clock::now() >= limits_.deadline;
}

// As long as nothing fits, a schedule may become as long as it takes.
Nanoseconds LocalSearch::limit() const {
  return kicking_ || recorded_.overflow > 0 ? kNoLimit : weighed(current_) + slack_;
}

Nanoseconds LocalSearch::weighed(const Score& score) const {
  const double excess = ns_per_byte_ * static_cast<double>(score.overflow);
  return score.makespan + static_cast<Nanoseconds>(std::min(excess, static_cast<double>(kNoLimit) / 2));
}

// At first, to exceed the limits by a thousandth of all memory costs a hundredth of the makespan.
double LocalSearch::start_weight() const {
  double bytes = 0;
  for (DeviceIndex device = 0; device < cost_.device_count(); ++device)
    if (const Bytes limit = cost_.machine().device(device).memory_limit; limit != kUnlimited)
      bytes += static_cast<double>(limit);
  return 10 * static_cast<double>(recorded_.makespan) / std::max(bytes, 1.0);
}

// Strategic oscillation (Glover, Decision Sciences 8, 1977): the way from one schedule that fits
// to a better one may lead over some that do not. The weight grows until the search comes back.
void LocalSearch::weigh_overflow() {
  constexpr int kEvery = 64;
  constexpr double kStep = 1.25;
  ++(current_.overflow > 0 ? beyond_ : within_);
  if (beyond_ + within_ < kEvery) return;
  if (3 * beyond_ > within_) ns_per_byte_ *= kStep;
  if (beyond_ * 10 < within_) ns_per_byte_ /= kStep;
  beyond_ = within_ = 0;
}

// The temperature falls geometrically over the time given. It begins as high as there are moves to
// come down from it again: from high up, few moves do not even come back to where they began.
void LocalSearch::cool() {
  constexpr double kLast = 1e-4;  // of the makespan
  constexpr double kMany = 200, kCoolest = 0.03, kKnown = 0.01;
  double used = static_cast<double>(counts_.tried) / static_cast<double>(limits_.moves);
  if (limits_.deadline != Clock::time_point::max())
    used = std::max(used, std::chrono::duration<double>(Clock::now() - begin_) / (limits_.deadline - begin_));
  const double moves = used > kKnown ? static_cast<double>(counts_.tried) / used : 0;
  const double first = limits_.temperature * std::clamp(moves / (kMany * graph_.node_count()), kCoolest, 1.0);
  temperature_ = first * std::pow(kLast / first, used) * static_cast<double>(recorded_.makespan);
}

void LocalSearch::refresh() {
  cool();
  state_->critical_path(path_, random_.below(2) == 0);
  // Tails cost a pass over the graph: refresh them when the moves have cost as much.
  if (!tails_known_ || state_->nodes_recomputed() - recomputed_at_tails_ > 2 * graph_.node_count()) {
    state_->compute_tails();
    tails_known_ = true;
    recomputed_at_tails_ = state_->nodes_recomputed();
  }
  held_.clear();
  if (current_.overflow > 0) {
    state_->overflow();
    state_->held_at_worst(held_);
  }
  since_refresh_ = 0;
  stale_ = false;
}

void LocalSearch::keep_best() {
  if (!unsaved_) return;
  unsaved_ = false;
  best_ = state_->placement();
}

// Fills `next`. Memory is counted last, as it takes a pass over the graph.
bool LocalSearch::acceptable(Nanoseconds makespan, Score& next) const {
  next = {0, makespan};
  if (makespan > limit()) return false;
  if (!limited_) return true;
  const bool any_fits = recorded_.overflow == 0;
  next.overflow = state_->overflow(kicking_ || any_fits ? kUnlimited : current_.overflow);
  if (kicking_) return true;
  if (any_fits) return weighed(next) <= weighed(current_) + slack_;
  return next.overflow < current_.overflow ||
         (next.overflow == current_.overflow && makespan <= current_.makespan + slack_);
}

void LocalSearch::decide(bool finished) {
  ++since_best_;
  if (limited_ && recorded_.overflow == 0) weigh_overflow();
  Score next;
  if (!finished || !acceptable(state_->makespan(), next)) return state_->rollback();
  if (next > recorded_ && unsaved_) {
    // Leaving the best state for a worse one: remember it first.
    state_->rollback();
    keep_best();
    return;
  }
  state_->commit();
  ++counts_.accepted;
  stale_ = stale_ || next != current_;
  current_ = next;
  if (current_ < recorded_) {
    recorded_ = current_;
    unsaved_ = true;
    since_best_ = 0;
  }
}

void LocalSearch::restart_from(std::span<const DeviceIndex> device_of, const Simulation& simulation) {
  counts_.nodes_recomputed += state_->nodes_recomputed();
  state_.emplace(cost_, std::vector<DeviceIndex>(device_of.begin(), device_of.end()), simulation);
  current_ = score();
  since_best_ = recomputed_at_tails_ = recomputed_at_listing_ = 0;
  stale_ = true;
  tails_known_ = false;
}

void LocalSearch::return_to_best() {
  keep_best();
  restart_from(best_.device_of, simulate(cost_, best_, Detail::kTimes));
}

// Moves keep orders as far as they can; now and then list scheduling finds a better order for the
// same devices.
void LocalSearch::list_again() {
  recomputed_at_listing_ = state_->nodes_recomputed();
  Placement listed{cost_.device_count(), state_->devices(), {}};
  const Simulation simulation = simulate(cost_, listed, limited_ ? Detail::kAll : Detail::kTimes);
  const Score next{limited_ ? memory_overflow(cost_.machine(), simulation) : 0, simulation.makespan};
  if (recorded_.overflow > 0 ? next >= current_ : weighed(next) >= weighed(current_)) return;
  keep_best();
  restart_from(listed.device_of, simulation);
  if (current_ >= recorded_) return;
  recorded_ = current_;
  unsaved_ = true;
}

Placement LocalSearch::run(ImprovementCounts* counts) {
  constexpr std::int64_t kRefreshEvery = 200, kPatience = 2000, kOverflowPatience = 500;
  if (limited_) ns_per_byte_ = start_weight();
  if (cost_.device_count() > 1 && graph_.node_count() > 0)
    while (!out_of_time()) {
      const bool exceeds = current_.overflow > recorded_.overflow && recorded_.overflow > 0;
      if (since_best_ > (exceeds ? kOverflowPatience : kPatience)) {
        if (current_ != recorded_) return_to_best();
        kick();
      }
      if (state_->nodes_recomputed() - recomputed_at_listing_ > 10 * graph_.node_count()) list_again();
      if (stale_ || since_refresh_ >= kRefreshEvery) refresh();
      ++since_refresh_;
      ++since_best_;
      ++counts_.tried;  // also what pins or groups refuse: where they leave nothing to move, the limit still
                        // ends it
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
  // The simulator has the last word.
  const auto score = [&](const Placement& judged) {
    const Simulation simulation =
        simulate(cost, judged, cost.machine().limited() ? Detail::kAll : Detail::kTimes);
    return Score{cost.machine().limited() ? memory_overflow(cost.machine(), simulation) : 0,
                 simulation.makespan};
  };
  return score(result) <= score(placement) ? result : placement;
}

}  // namespace convoy::partition
