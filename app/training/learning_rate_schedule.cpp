#include "app/training/learning_rate_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>

namespace convoy::app {
namespace {

double between(double from, double to, double share, Anneal anneal) {
  if (anneal == Anneal::linear) return from + (to - from) * share;
  return to + (from - to) / 2 * (1 + std::cos(std::numbers::pi * share));
}

// Returns the rate of one_cycle at step `t`. As in PyTorch, the peak is at step rise * steps - 1,
// which may lie between two steps, and the end is at step steps - 1.
double one_cycle(const LearningRateSchedule& schedule, double t, double steps) {
  const double start = schedule.learning_rate / schedule.initial_division;
  const double finish = start / schedule.final_division;
  const double peak_at = schedule.rise * steps - 1, last = steps - 1;
  if (t <= peak_at && peak_at > 0) {
    return between(start, schedule.learning_rate, t / peak_at, schedule.anneal);
  }
  if (last <= peak_at) return schedule.learning_rate;
  return between(schedule.learning_rate, finish, (t - peak_at) / (last - peak_at), schedule.anneal);
}

}  // namespace

double LearningRateSchedule::learning_rate_at(std::int64_t step) const {
  step = std::clamp<std::int64_t>(step, 0, std::max<std::int64_t>(total_steps, 1) - 1);
  if (step < warmup_steps) {
    const double first = kind == ScheduleKind::one_cycle ? learning_rate / initial_division : learning_rate;
    return first * static_cast<double>(step + 1) / static_cast<double>(warmup_steps);
  }
  const double t = static_cast<double>(step - warmup_steps);
  // `steps` is at least 1, because warmup_steps <= step < total_steps.
  const double steps = static_cast<double>(total_steps - warmup_steps);
  const double span = learning_rate - final_learning_rate;
  switch (kind) {
    case ScheduleKind::constant:
      return learning_rate;
    case ScheduleKind::step: {
      const auto passed = std::upper_bound(milestones.begin(), milestones.end(), step) - milestones.begin();
      return learning_rate * std::pow(gamma, static_cast<double>(passed));
    }
    case ScheduleKind::cosine:
      return final_learning_rate + span * (1 + std::cos(std::numbers::pi * t / steps)) / 2;
    case ScheduleKind::polynomial:
      return final_learning_rate + span * std::pow(1 - t / steps, power);
    case ScheduleKind::one_cycle:
      return one_cycle(*this, t, steps);
  }
  throw std::invalid_argument("schedule of unknown kind");
}

double scaled_learning_rate(double rate, RateScaling scaling, std::int64_t global_batch,
                            std::int64_t base_batch) {
  if (scaling == RateScaling::none) return rate;
  if (global_batch < 1 || base_batch < 1) throw std::invalid_argument("batches must be positive");
  const double k = static_cast<double>(global_batch) / static_cast<double>(base_batch);
  return rate * (scaling == RateScaling::linear ? k : std::sqrt(k));
}

}  // namespace convoy::app
