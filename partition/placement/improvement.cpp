// The loop of the local search: which schedules it accepts and when it stops.
// local_search_moves.cpp has the moves.
#include "partition/placement/improvement.h"

#include <algorithm>
#include <cmath>

#include "partition/memory/overflow.h"
#include "partition/placement/critical_path.h"
#include "partition/placement/local_search.h"

namespace convoy::partition {
namespace {

// Longer than any schedule, but small enough for sums without overflow.
constexpr Nanoseconds kNoLimit = std::numeric_limits<Nanoseconds>::max() / 2;

}  // namespace

bool LocalSearch::out_of_time() {
  if (best_score_.overflow == 0 && best_score_.makespan <= limits_.good_enough) return true;
  return counts_.tried >= limits_.moves || work() >= limits_.work ||
         (limits_.deadline != Clock::time_point::max() && Clock::now() >= limits_.deadline);
}

Nanoseconds LocalSearch::limit() const {
  return kicking_ || fit_first() ? kNoLimit : penalised(score_) + slack_;
}

Nanoseconds LocalSearch::penalised(const Score& score) const {
  const double excess = penalty_ * static_cast<double>(score.overflow);
  return score.makespan + static_cast<Nanoseconds>(std::min(excess, static_cast<double>(kNoLimit) / 2));
}

// Returns the initial penalty in nanoseconds per byte above the limits. With it, exceeding the
// limits by a thousandth of all memory costs as much as a makespan that is longer by a hundredth.
double LocalSearch::first_penalty() const {
  double bytes = 0;
  for (DeviceIndex device = 0; device < cost_.device_count(); ++device)
    if (const Bytes limit = cost_.machine().device(device).memory_limit; limit != kUnlimited)
      bytes += static_cast<double>(limit);
  return 10 * static_cast<double>(best_score_.makespan) / std::max(bytes, 1.0);
}

// Adapts the penalty to the fraction of schedules that exceed the memory limits (strategic
// oscillation: Glover, Decision Sciences 8, 1977). With a low penalty, the search may reach a
// better fitting schedule through schedules that do not fit. A growing penalty leads the search
// back to those that fit.
void LocalSearch::adapt_penalty() {
  constexpr int kEvery = 64;
  constexpr double kStep = 1.25;
  ++(score_.overflow > 0 ? beyond_ : within_);
  if (beyond_ + within_ < kEvery) return;
  if (3 * beyond_ > within_) penalty_ *= kStep;
  if (beyond_ * 10 < within_) penalty_ /= kStep;
  beyond_ = within_ = 0;
}

// Lowers the temperature geometrically until the search ends. If there is time for only few moves,
// the temperature starts lower. After a hot start, few moves would not even lead back to a schedule
// as good as the first one.
void LocalSearch::set_temperature() {
  constexpr double kLast = 1e-4;  // the final temperature as a fraction of the makespan
  constexpr double kCoolest = 0.03, kKnown = 0.01;
  // With at least this many moves per node, the search starts at the full temperature.
  const double many = cost_.machine().contention() ? 400 : limited_ ? 200 : 100;
  double used = static_cast<double>(counts_.tried) / static_cast<double>(limits_.moves);
  used = std::max(used, static_cast<double>(work()) / static_cast<double>(limits_.work));
  if (limits_.deadline != Clock::time_point::max()) {
    // The deadline matters only if the work will clearly not be done by then. Otherwise the search
    // is the same as without a deadline.
    constexpr double kClearly = 1.25, kDelay = 0.02;
    const double time = std::chrono::duration<double>(Clock::now() - begin_) / (limits_.deadline - begin_);
    if (time > kClearly * used + kDelay) used = time;
  }
  used_ = used = std::max(used, used_);  // so that a search which catches up does not get hot again
  const double moves = used > kKnown ? static_cast<double>(counts_.tried) / used : 0;
  const double first = limits_.temperature * std::clamp(moves / (many * graph_.node_count()), kCoolest, 1.0);
  temperature_ = first * std::pow(kLast / first, used) * static_cast<double>(best_score_.makespan);
}

void LocalSearch::refresh() {
  set_temperature();
  find_critical_path(*state_, path_, random_.below(2) == 0);
  work_ += work::kPass * std::ssize(path_);
  at_peak_.clear();
  if (score_.overflow > 0) {
    memory_.overflow(*state_);
    memory_.nodes_at_peak(*state_, at_peak_);
  }
  since_refresh_ = 0;
  stale_ = false;
}

void LocalSearch::save_best() {
  if (!unsaved_) return;
  unsaved_ = false;
  best_ = state_->placement();
}

// Returns whether to accept the current move, which gives this makespan. Fills `next` with its
// score. Checks the memory last, because this takes a pass over the graph.
bool LocalSearch::acceptable(Nanoseconds makespan, Score& next) {
  next = {0, makespan};
  if (makespan > limit()) return false;
  if (!limited_) return true;
  work_ += work::kMemory * (std::int64_t{graph_.node_count()} + graph_.edge_count());
  next.overflow = memory_.overflow(*state_, kicking_ || !fit_first() ? kUnlimited : score_.overflow);
  if (kicking_) return true;
  if (!fit_first()) return penalised(next) <= penalised(score_) + slack_;
  return next.overflow < score_.overflow ||
         (next.overflow == score_.overflow && makespan <= score_.makespan + slack_);
}

void LocalSearch::decide(ScheduleState::Move move) {
  ++since_best_;
  if (limited_ && !fit_first()) adapt_penalty();
  Score next;
  if (!move.finished() || !acceptable(state_->makespan(), next)) return;
  if (next > best_score_ && unsaved_) {
    // The schedule before this move is the best one and not saved yet. Undo the move to save that
    // schedule.
    move.roll_back();
    save_best();
    return;
  }
  move.commit();
  ++counts_.accepted;
  stale_ = stale_ || next != score_;
  score_ = next;
  if (score_ < best_score_) {
    best_score_ = score_;
    unsaved_ = true;
    since_best_ = 0;
  }
}

void LocalSearch::restart_from(std::span<const DeviceIndex> device_of, const Simulation& simulation) {
  work_ += state_->work();
  state_.emplace(cost_, std::vector<DeviceIndex>(device_of.begin(), device_of.end()), simulation);
  score_ = score();
  since_best_ = 0;
  stale_ = true;
}

void LocalSearch::return_to_best() {
  save_best();
  restart_from(best_.device_of, simulate(cost_, best_, Detail::kTimes));
}

// Orders the nodes of the current placement by list scheduling and keeps this order if it is
// better. The moves themselves change the order as little as possible.
void LocalSearch::reorder_by_list_scheduling() {
  work_ += work::kList * graph_.node_count();
  work_at_listing_ = work();
  Placement listed{cost_.device_count(), state_->devices(), {}};
  const Simulation simulation = simulate(cost_, listed, limited_ ? Detail::kAll : Detail::kTimes);
  const Score next{limited_ ? memory_overflow(cost_.machine(), simulation) : 0, simulation.makespan};
  if (fit_first() ? next >= score_ : penalised(next) >= penalised(score_)) return;
  save_best();
  restart_from(listed.device_of, simulation);
  if (score_ >= best_score_) return;
  best_score_ = score_;
  unsaved_ = true;
}

Placement LocalSearch::run(ImprovementCounts* counts) {
  constexpr std::int64_t kRefreshEvery = 200, kOverflowPatience = 500;
  if (limited_) penalty_ = first_penalty();
  if (cost_.device_count() > 1 && graph_.node_count() > 0)
    while (!out_of_time()) {
      const bool exceeds = score_.overflow > best_score_.overflow && best_score_.overflow > 0;
      if (since_best_ > (exceeds ? kOverflowPatience : limits_.patience)) {
        if (score_ != best_score_) return_to_best();
        kick();
      }
      if (work() - work_at_listing_ > 10 * work::kRecompute * graph_.node_count())
        reorder_by_list_scheduling();
      if (stale_ || since_refresh_ >= kRefreshEvery) refresh();
      ++since_refresh_;
      ++since_best_;
      ++counts_.tried;  // counts refused moves, too, so that a search with only pinned nodes ends
      step();
    }
  save_best();
  if (counts != nullptr) *counts = counts_;
  return best_;
}

Placement improve(const CostModel& cost, const Units& units, const Placement& placement,
                  const ImprovementLimits& limits, ImprovementCounts* counts) {
  Placement result = LocalSearch(cost, units, placement, limits).run(counts);
  // The times in the search may be inexact. Let the simulator decide whether the result is better
  // than the start.
  const auto score = [&](const Placement& judged) {
    const Simulation simulation =
        simulate(cost, judged, cost.machine().limited() ? Detail::kAll : Detail::kTimes);
    return Score{cost.machine().limited() ? memory_overflow(cost.machine(), simulation) : 0,
                 simulation.makespan};
  };
  return score(result) <= score(placement) ? result : placement;
}

}  // namespace convoy::partition
