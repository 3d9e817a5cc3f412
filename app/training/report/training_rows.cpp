#include "app/training/report/training_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/training/schedule.h"

namespace convoy::app {
namespace {

std::string optimizer_row(const TrainOptions& o) {
  using kernels::OptimizerKind;
  std::string text = name_of(o.optimizer);
  if (o.optimizer == OptimizerKind::adamw)
    text += fmt::format(", betas {} and {}, epsilon {}", o.beta1, o.beta2, o.epsilon);
  else
    text += fmt::format(", {}momentum {}", o.nesterov ? "Nesterov " : "", o.momentum);
  if (o.optimizer == OptimizerKind::lars)
    text += fmt::format(", trust coefficient {}, epsilon {}", o.trust_coefficient, o.epsilon);
  text += fmt::format(", weight decay {}", o.weight_decay);
  if (o.clip_gradient_norm > 0) text += fmt::format(", gradient norm at most {}", o.clip_gradient_norm);
  return text;
}

std::string curve(const TrainOptions& o, const Schedule& schedule) {
  switch (schedule.kind) {
    case ScheduleKind::constant:
      return "constant";
    case ScheduleKind::step:
      return fmt::format("times {} after steps {}", schedule.gamma, fmt::join(schedule.milestones, ", "));
    case ScheduleKind::cosine:
      return fmt::format("cosine to {}", schedule.final_learning_rate);
    case ScheduleKind::polynomial:
      return fmt::format("polynomial of power {} to {}", schedule.power, schedule.final_learning_rate);
    case ScheduleKind::one_cycle:
      return fmt::format("one-cycle ({}) with its peak after {:.4g} % of the steps",
                         name_of(o.one_cycle_anneal), 100 * schedule.rise);
  }
  return name_of(o.schedule);
}

std::string learning_rate_row(const TrainOptions& o, std::int64_t steps_per_epoch) {
  const Schedule schedule = make_schedule(o, steps_per_epoch);
  std::string text = fmt::format("{:.6g}", schedule.learning_rate);
  if (o.scale_learning_rate != RateScaling::none)
    text += fmt::format(" ({} for a batch of {}, {} scaling)", o.learning_rate, o.base_batch,
                        name_of(o.scale_learning_rate));
  text += ", " + curve(o, schedule);
  if (schedule.warmup_steps > 0) text += fmt::format(", {} steps of warm-up", schedule.warmup_steps);
  return text;
}

// "every epoch", "every 5 epochs", "at the end".
std::string every(std::int64_t count, const char* unit) {
  if (count == 0) return "at the end";
  return count == 1 ? fmt::format("every {}", unit) : fmt::format("every {} {}s", count, unit);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> training_rows(const TrainOptions& o,
                                                               std::int64_t steps_per_epoch) {
  const std::string checkpoints = o.checkpoint_every_steps > 0 ? every(o.checkpoint_every_steps, "step")
                                                               : every(o.checkpoint_every_epochs, "epoch");
  return {
      {"optimizer", optimizer_row(o)},
      {"learning rate", learning_rate_row(o, steps_per_epoch)},
      {"loss", o.label_smoothing > 0 ? fmt::format("cross-entropy, label smoothing {}", o.label_smoothing)
                                     : "cross-entropy"},
      {"moving average", o.ema > 0 ? fmt::format("decay {} a step; best is chosen by it", o.ema) : "none"},
      {"tests", every(o.eval_every, "epoch")},
      {"checkpoints",
       fmt::format("{}; the newest {} and the best are kept", checkpoints, o.keep_checkpoints)}};
}

}  // namespace convoy::app
