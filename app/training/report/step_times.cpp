#include "app/training/report/step_times.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace convoy::app {

double RecentRate::add(const StepTiming& timing) {
  recent_.step_ms += timing.step_ms;
  recent_.images += timing.images;
  const double rate = static_cast<double>(recent_.images) / recent_.step_ms * 1e3;
  if (std::exchange(first_, false)) restart();
  return rate;
}

StepTimes::StepTimes(std::int64_t expected_steps, std::int64_t warmup_steps)
    : warmup_steps_(static_cast<std::size_t>(std::max<std::int64_t>(warmup_steps, 0))) {
  step_ms_.reserve(static_cast<std::size_t>(std::clamp<std::int64_t>(expected_steps, 0, 1 << 22)));
}

void StepTimes::Totals::add(const StepTiming& timing) {
  step_ms += timing.step_ms;
  data_wait_ms += timing.data_wait_ms;
  exposed_comm_ms += timing.exposed_comm_ms;
  images += timing.images;
  ++steps;
}

void StepTimes::add(const StepTiming& timing) {
  step_ms_.push_back(static_cast<float>(timing.step_ms));
  all_.add(timing);
  if (all_.steps > warmup_steps_) settled_.add(timing);
}

double StepTimes::quantile_ms(double share) const {
  const std::size_t first = settled_.steps > 0 ? warmup_steps_ : 0;
  std::vector<float> sorted(step_ms_.begin() + static_cast<std::ptrdiff_t>(first), step_ms_.end());
  if (sorted.empty()) return 0;
  std::sort(sorted.begin(), sorted.end());
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  const std::size_t at = std::clamp<std::size_t>(rank, 1, sorted.size()) - 1;
  const bool between = share == 0.5 && sorted.size() % 2 == 0;
  return between ? (static_cast<double>(sorted[at]) + sorted[at + 1]) / 2 : sorted[at];
}

double StepTimes::images_per_second() const {
  const auto& sums = totals();
  return sums.step_ms > 0 ? static_cast<double>(sums.images) * 1000 / sums.step_ms : 0;
}

double StepTimes::mean_step_ms() const {
  return totals().steps > 0 ? totals().step_ms / static_cast<double>(totals().steps) : 0;
}

double StepTimes::mean_data_wait_ms() const {
  return totals().steps > 0 ? totals().data_wait_ms / static_cast<double>(totals().steps) : 0;
}

double StepTimes::mean_exposed_comm_ms() const {
  return totals().steps > 0 ? totals().exposed_comm_ms / static_cast<double>(totals().steps) : 0;
}

}  // namespace convoy::app
