#include "app/training/resumed_options.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/errors.h"
#include "app/json_text.h"

namespace convoy::app {
namespace {

// A run may be resumed elsewhere, on another backend or on other ranks, and may be made longer.
constexpr const char* kDecisive[] = {"model",
                                     "size",
                                     "limit-train",
                                     "crop-padding",
                                     "cutout",
                                     "flip",
                                     "random-resized-crop",
                                     "color-jitter",
                                     "auto-augment",
                                     "random-erasing",
                                     "mixup",
                                     "cutmix",
                                     "global-batch",
                                     "accumulate",
                                     "optimizer",
                                     "learning-rate",
                                     "momentum",
                                     "nesterov",
                                     "weight-decay",
                                     "beta1",
                                     "beta2",
                                     "epsilon",
                                     "trust-coefficient",
                                     "clip-gradient-norm",
                                     "label-smoothing",
                                     "ema",
                                     "sync-batch-norm",
                                     "schedule",
                                     "scale-learning-rate",
                                     "base-batch",
                                     "warmup-epochs",
                                     "warmup-steps",
                                     "milestones",
                                     "gamma",
                                     "final-learning-rate",
                                     "power",
                                     "one-cycle-rise",
                                     "one-cycle-initial-division",
                                     "one-cycle-final-division",
                                     "one-cycle-anneal",
                                     "seed"};

// Milestones count in the unit in which the run's length is given.
void check_resumed_unit(const TrainOptions& options, const nlohmann::json& saved) {
  const bool now_steps = options.steps > 0, then_steps = saved.value("steps", std::int64_t{0}) > 0;
  if (options.milestones.empty() || now_steps == then_steps) return;
  throw UsageError(fmt::format("--milestones: with {} they would be {}, but in the run to resume they are {}",
                               now_steps ? "--steps" : "--epochs", now_steps ? "steps" : "epochs",
                               then_steps ? "steps" : "epochs"));
}

}  // namespace

void check_resumed_options(const TrainOptions& options, const nlohmann::json& saved) {
  const auto now = to_json(options), defaults = to_json(TrainOptions{});
  for (const char* flag : kDecisive) {
    const nlohmann::json& then = saved.contains(flag) ? saved.at(flag) : defaults.at(flag);
    if (then != now.at(flag))
      throw UsageError(fmt::format("--{}: found {}, but the run to resume was started with {}", flag,
                                   json_text(now.at(flag)), json_text(then)));
  }
  check_resumed_unit(options, saved);
}

std::string rate_jump(const TrainOptions& options, const nlohmann::json& saved, std::int64_t step,
                      std::int64_t steps_per_epoch) {
  const ScheduleKind kind = schedule_kind(options.schedule);
  if (kind == ScheduleKind::constant || kind == ScheduleKind::step) return {};
  TrainOptions then = options;  // all else is the same, as check_resumed_options has seen
  then.epochs = saved.value("epochs", options.epochs);
  then.steps = saved.value("steps", options.steps);
  const Schedule now = make_schedule(options, steps_per_epoch), before = make_schedule(then, steps_per_epoch);
  if (step >= now.total_steps) return {};
  const double found = now.learning_rate_at(step), expected = before.learning_rate_at(step);
  if (found == expected) return {};
  return fmt::format(
      "{}: the run to resume was to have {} steps, this one {}, and --schedule {} depends on that: the "
      "learning rate "
      "of the next step is {:.6g}, that of the last one was {:.6g}",
      options.steps > 0 ? "--steps" : "--epochs", before.total_steps, now.total_steps, options.schedule,
      found, before.learning_rate_at(step > 0 ? step - 1 : 0));
}

}  // namespace convoy::app
