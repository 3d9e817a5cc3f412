// Statistics of step times without the first steps, during which caches, pages and clocks settle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace convoy::app {

struct StepTiming {
  double step_ms = 0;          // from one step's start to the next one's, waiting included
  double data_wait_ms = 0;     // the time of it that the rank waited for the batch
  double exposed_comm_ms = 0;  // the time of it that the rank waited for others with nothing to compute
  std::int64_t images = 0;     // over all ranks
};

// The rate over all steps since the last line of a log, as a short last batch of an epoch would
// distort the rate of one step. The run's first step takes long and is not averaged with others.
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
  // Reserves room for `expected_steps`, so that adding them allocates nothing.
  explicit StepTimes(std::int64_t expected_steps, std::int64_t warmup_steps = 10);

  void add(const StepTiming& timing);

  // Figures over the steps after warm-up, over all steps if there are none after it; 0 before the
  // first step.
  double median_ms() const { return quantile_ms(0.5); }
  double p95_ms() const { return quantile_ms(0.95); }
  double images_per_second() const;  // images / time, over all ranks
  double mean_step_ms() const;
  double mean_data_wait_ms() const;
  double mean_exposed_comm_ms() const;
  // Returns the smallest time that at least a `share` of the steps do not exceed. The median of an
  // even number of steps is the mean of the middle two.
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
  std::vector<float> step_ms_;  // of every step
  Totals all_, settled_;
};

}  // namespace convoy::app
