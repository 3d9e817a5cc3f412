// Learning-rate schedules. A schedule is a pure function of the step, so a resumed run needs no
// state of the schedule, and every rank computes the same rate.
#pragma once

#include <cstdint>
#include <vector>

#include "app/choices.h"

namespace convoy::app {

enum class ScheduleKind : std::uint8_t { constant, step, cosine, polynomial, one_cycle };
template <>
inline constexpr auto kChoices<ScheduleKind> =
    std::to_array<Choice<ScheduleKind>>({{"constant", ScheduleKind::constant},
                                         {"step", ScheduleKind::step},
                                         {"cosine", ScheduleKind::cosine},
                                         {"polynomial", ScheduleKind::polynomial},
                                         {"one-cycle", ScheduleKind::one_cycle}});

// The form in which one_cycle raises and lowers the rate: half a cosine or a straight line.
enum class Anneal : std::uint8_t { cosine, linear };
template <>
inline constexpr auto kChoices<Anneal> = std::to_array<Choice<Anneal>>({{"cosine", Anneal::cosine},
                                                                        {"linear", Anneal::linear}});

// The learning rate at every step. The rate rises linearly over steps [0, warmup_steps): step s has
// the rate first * (s + 1) / warmup_steps (Goyal et al., "Accurate, Large Minibatch SGD", 2017).
// `first` is the rate at which the schedule begins: learning_rate / initial_division for one_cycle,
// else learning_rate.
//
// The other n = total_steps - warmup_steps steps have the rate below, with t = step - warmup_steps:
//   constant    learning_rate
//   step        learning_rate * gamma^(number of milestones <= step); milestones count from step 0
//   cosine      final + (learning_rate - final) * (1 + cos(pi t / n)) / 2
//               (Loshchilov & Hutter, "SGDR", 2017)
//   polynomial  final + (learning_rate - final) * (1 - t / n)^power
//   one_cycle   from learning_rate / initial_division up to learning_rate over the first `rise` of
//               the steps, then down to learning_rate / initial_division / final_division at the
//               last step: the rates of PyTorch's OneCycleLR in two phases (Smith & Topin,
//               "Super-Convergence", 2018)
// Steps after the last step have the rate of the last step.
struct LearningRateSchedule {
  ScheduleKind kind = ScheduleKind::constant;
  double learning_rate = 0.1;  // the highest rate
  std::int64_t total_steps = 1;
  std::int64_t warmup_steps = 0;
  std::vector<std::int64_t> milestones{};  // for `step`, in ascending order
  double gamma = 0.1;                      // for `step`: the factor at each milestone
  double final_learning_rate = 0;          // for `cosine` and `polynomial`: the last rate
  double power = 1;                        // for `polynomial`: the exponent
  double rise = 0.3;                       // for `one_cycle`: share of the steps in which the rate rises
  double initial_division = 25;            // for `one_cycle`: highest rate / first rate
  double final_division = 1e4;             // for `one_cycle`: first rate / last rate
  Anneal anneal = Anneal::cosine;          // for `one_cycle`: the form of its rise and fall

  double learning_rate_at(std::int64_t step) const;
};

enum class RateScaling : std::uint8_t { none, linear, square_root };
template <>
inline constexpr auto kChoices<RateScaling> = std::to_array<Choice<RateScaling>>(
    {{"none", RateScaling::none}, {"linear", RateScaling::linear}, {"sqrt", RateScaling::square_root}});

// Returns the learning rate for `global_batch` if `rate` was chosen for `base_batch`. With k =
// global_batch / base_batch the result is `rate` (none), k * rate (linear; Goyal et al., 2017) or
// sqrt(k) * rate (square_root; Krizhevsky, "One weird trick", 2014).
double scaled_learning_rate(double rate, RateScaling scaling, std::int64_t global_batch,
                            std::int64_t base_batch);

}  // namespace convoy::app
