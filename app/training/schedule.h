// Learning-rate schedules. A schedule is a pure function of the step: a resumed run needs no state
// of it, and every rank computes the same rate.
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

// The shape of the way up and of the way down of one_cycle: half a cosine or a straight line.
enum class Anneal : std::uint8_t { cosine, linear };
template <>
inline constexpr auto kChoices<Anneal> = std::to_array<Choice<Anneal>>({{"cosine", Anneal::cosine},
                                                                        {"linear", Anneal::linear}});

// Steps [0, warmup_steps) rise linearly: step s has the rate first * (s + 1) / warmup_steps (Goyal
// et al., "Accurate, Large Minibatch SGD", 2017). `first` is the rate that the schedule begins
// with: learning_rate, for one_cycle learning_rate / initial_division.
// The schedule proper runs over the remaining n = total_steps - warmup_steps steps. With t = step -
// warmup_steps:
//   constant    learning_rate
//   step        learning_rate * gamma^(number of milestones <= step); milestones count from step 0
//   cosine      final + (learning_rate - final) * (1 + cos(pi t / n)) / 2
//               (Loshchilov & Hutter, "SGDR", 2017)
//   polynomial  final + (learning_rate - final) * (1 - t / n)^power
//   one_cycle   from learning_rate / initial_division up to learning_rate over the first `rise` of
//               the steps, then down to learning_rate / initial_division / final_division at the
//               last step: the rates of PyTorch's OneCycleLR in two phases (Smith & Topin,
//               "Super-Convergence", 2018)
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
  Anneal anneal = Anneal::cosine;          // one_cycle

  double learning_rate_at(std::int64_t step) const;
};

enum class RateScaling : std::uint8_t { none, linear, square_root };
template <>
inline constexpr auto kChoices<RateScaling> = std::to_array<Choice<RateScaling>>(
    {{"none", RateScaling::none}, {"linear", RateScaling::linear}, {"sqrt", RateScaling::square_root}});

// Returns the rate for `global_batch` if `rate` was chosen for `base_batch`: unchanged, times k
// (Goyal et al., 2017) or times sqrt(k) (Krizhevsky, "One weird trick", 2014), with k =
// global_batch / base_batch.
double scaled_learning_rate(double rate, RateScaling scaling, std::int64_t global_batch,
                            std::int64_t base_batch);

}  // namespace convoy::app
