#include "app/training/resumed_options.h"

#include <fmt/format.h>

#include "app/errors.h"
#include "app/json_text.h"
#include "app/training/option_table.h"

namespace convoy::app {
namespace {

// Refuses to resume if there are milestones and their unit has changed. Milestones are in epochs
// with --epochs and in steps with --steps.
void check_resumed_unit(const TrainOptions& options, const TrainOptions& saved) {
  const bool now_steps = options.steps > 0, then_steps = saved.steps > 0;
  if (options.milestones.empty() || now_steps == then_steps) return;
  throw UsageError(fmt::format("--milestones: with {} they would be {}, but in the run to resume they are {}",
                               now_steps ? "--steps" : "--epochs", now_steps ? "steps" : "epochs",
                               then_steps ? "steps" : "epochs"));
}

}  // namespace

void check_resumed_options(const TrainOptions& options, const TrainOptions& saved) {
  for_each_option([&](const OptionRow& row) {
    if (row.agreement != Agreement::run) return;
    const auto now = value_of(options, row), then = value_of(saved, row);
    if (now != then)
      throw UsageError(fmt::format("--{}: found {}, but the run to resume was started with {}", row.flag,
                                   json_text(now), json_text(then)));
  });
  check_resumed_unit(options, saved);
}

std::string rate_jump(const TrainOptions& options, const TrainOptions& saved, std::int64_t step,
                      std::int64_t steps_per_epoch) {
  if (options.schedule == ScheduleKind::constant || options.schedule == ScheduleKind::step) return {};
  const LearningRateSchedule now = make_schedule(options, steps_per_epoch),
                             before = make_schedule(saved, steps_per_epoch);
  if (step >= now.total_steps) return {};
  const double found = now.learning_rate_at(step), expected = before.learning_rate_at(step);
  if (found == expected) return {};
  return fmt::format(
      "{}: the run to resume was to have {} steps, this one {}, and --schedule {} depends on that: the "
      "learning rate of the next step is {:.6g}, that of the last one was {:.6g}",
      options.steps > 0 ? "--steps" : "--epochs", before.total_steps, now.total_steps,
      name_of(options.schedule), found, before.learning_rate_at(step > 0 ? step - 1 : 0));
}

}  // namespace convoy::app
