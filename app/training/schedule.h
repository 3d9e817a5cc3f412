// Learning-rate schedules. A schedule is a pure function of the step, so that a resumed run needs no state of
// it and every rank computes the same rate.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace convoy::app {

enum class ScheduleKind : std::uint8_t { constant, step, cosine, polynomial, one_cycle };

// Steps [0, warmup_steps) rise linearly, the step s having the rate first * (s + 1) / warmup_steps (Goyal et al.,
// "Accurate, Large Minibatch SGD", 2017), where `first` is what the schedule begins with: the peak, for one_cycle
// learning_rate / initial_division. The schedule proper then runs over the remaining
// n = total_steps - warmup_steps steps; with t = step - warmup_steps:
//   constant    learning_rate
//   step        learning_rate * gamma^(number of milestones <= step); milestones count from step 0 of the run
//   cosine      final + (learning_rate - final) * (1 + cos(pi t / n)) / 2      (Loshchilov & Hutter, SGDR,
//   2017) polynomial  final + (learning_rate - final) * (1 - t / n)^power one_cycle   from learning_rate /
//   initial_division up to learning_rate over the first `rise` of the steps,
//               then down to learning_rate / initial_division / final_division at the last step (Smith &
//               Topin, "Super-Convergence", 2018); the rates of PyTorch's OneCycleLR in two phases
// Steps after the last keep the last step's rate.
struct Schedule {
  ScheduleKind kind = ScheduleKind::constant;
  double learning_rate = 0.1;  // the peak
  std::int64_t total_steps = 1;
  std::int64_t warmup_steps = 0;
  std::vector<std::int64_t> milestones{};  // step: ascending
  double gamma = 0.1;                      // step
  double final_learning_rate = 0;          // cosine, polynomial
  double power = 1;                        // polynomial
  double rise = 0.3;                       // one_cycle: share of the steps, in (0, 1)
  double initial_division = 25;            // one_cycle
  double final_division = 1e4;             // one_cycle
  bool linear_anneal = false;              // one_cycle: straight lines instead of half cosines

  double learning_rate_at(std::int64_t step) const;
};

// "constant", "step", "cosine", "polynomial", "one-cycle". Throws std::invalid_argument naming any other
// name.
ScheduleKind schedule_kind(const std::string& name);
std::vector<std::string> schedule_names();

enum class RateScaling : std::uint8_t { none, linear, square_root };
RateScaling rate_scaling(const std::string& name);  // "none", "linear", "sqrt"
std::vector<std::string> rate_scaling_names();

// The rate for `global_batch` when `rate` was chosen for `base_batch`: unchanged, times k (Goyal et al.,
// 2017) or times sqrt(k) (Krizhevsky, "One weird trick", 2014), with k = global_batch / base_batch.
double scaled_learning_rate(double rate, RateScaling scaling, std::int64_t global_batch,
                            std::int64_t base_batch);

}  // namespace convoy::app
