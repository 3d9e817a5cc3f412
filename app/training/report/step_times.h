// Computes statistics of step times. The first steps are left out, because caches, memory pages and
// clock rates have not settled yet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace convoy::app {

struct StepTiming {
  // Milliseconds from the end of the previous step to the end of this step, including waiting.
  double step_ms = 0;
  // The part of step_ms in which the rank waited for the batch.
  double data_wait_ms = 0;
  // The part of step_ms in which the rank waited for other ranks and computed nothing.
  double exposed_comm_ms = 0;
  // The number of images over all ranks.
  std::int64_t images = 0;
};

// Computes the images per second over all steps since the last line of the log. A single step would
// mislead: for example, the last batch of an epoch may be short. The run's first step is slow, so
// its rate is reported alone and does not enter an average.
class RecentRate {
 public:
  double add(const StepTiming& timing);
  void restart() { recent_ = {}; }

 private:
  StepTiming recent_{};
  bool first_ = true;
};

class StepTimes {
 public:
  // Reserves memory for `expected_steps` steps, so that adding them allocates nothing.
  explicit StepTimes(std::int64_t expected_steps, std::int64_t warmup_steps = 10);

  void add(const StepTiming& timing);

  // The functions below leave out the first `warmup_steps` steps. If there are no later steps, they
  // cover all steps. They return 0 before the first step.
  double median_ms() const { return quantile_ms(0.5); }
  double p95_ms() const { return quantile_ms(0.95); }
  double images_per_second() const;  // over all ranks
  double mean_step_ms() const;
  double mean_data_wait_ms() const;
  double mean_exposed_comm_ms() const;
  // Returns a quantile of the step times. `share` is from 0 to 1: 0.95 gives the smallest step time
  // that is at least as long as 95 % of the step times. The median (0.5) of an even number of steps
  // is the mean of the two middle ones.
  double quantile_ms(double share) const;

 private:
  struct Totals {
    double step_ms = 0, data_wait_ms = 0, exposed_comm_ms = 0;
    std::int64_t images = 0;
    std::size_t steps = 0;
    void add(const StepTiming& timing);
  };
  const Totals& totals() const { return settled_.steps > 0 ? settled_ : all_; }

  std::size_t warmup_steps_;
  std::vector<float> step_ms_;  // the time of each step
  Totals all_, settled_;
};

}  // namespace convoy::app
