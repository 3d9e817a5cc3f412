#include "app/training/train_options.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "app/errors.h"

namespace convoy::app {
namespace {

void require(bool holds, const std::string& message) {
  if (!holds) throw UsageError(message);
}

// A position in epochs or steps, in steps. Half a step is not a step: rounded.
std::int64_t in_steps(double position, std::int64_t steps_per_unit) {
  return static_cast<std::int64_t>(std::llround(position * static_cast<double>(steps_per_unit)));
}

std::int64_t warmup_steps(const TrainOptions& options, std::int64_t steps_per_epoch) {
  return options.warmup_steps > 0 ? options.warmup_steps : in_steps(options.warmup_epochs, steps_per_epoch);
}

void check_schedule(const TrainOptions& o) {
  require(o.warmup_epochs == 0 || o.warmup_steps == 0,
          "--warmup-epochs, --warmup-steps: found both, expected one");
  const bool has_milestones = !o.milestones.empty();
  require(o.schedule != "step" || has_milestones, "--milestones: --schedule step expects at least one");
  const auto out_of_order =
      std::adjacent_find(o.milestones.begin(), o.milestones.end(), std::greater_equal<>());
  if (out_of_order != o.milestones.end()) {
    throw UsageError(fmt::format("--milestones: found {} before {}, expected ascending numbers",
                                 *out_of_order, *(out_of_order + 1)));
  }
}

// Found before the training, not in the middle of it.
void check_trace(const TrainOptions& o) {
  if (o.trace.empty()) return;
  const std::filesystem::path folder = std::filesystem::path(o.trace).parent_path();
  require(folder.empty() || std::filesystem::is_directory(folder),
          fmt::format("--trace {}: no folder {}", o.trace, folder.string()));
  require(!std::filesystem::is_directory(o.trace),
          fmt::format("--trace {}: is a folder, expected the name of a file", o.trace));
}

// What would have no effect, in the order of the flags.
void check_belongings(const TrainOptions& o) {
  const TrainOptions plain;
  const std::string data = o.data == "synthetic" ? o.data : "FILE";
  check_belongs("--classes", o.classes != plain.classes, "--data", data, {"synthetic"});
  check_belongs("--data-on-device", o.data_on_device, "--backend", o.backend, {"cuda"});
  const std::string rule = "--optimizer", schedule = "--schedule";
  check_belongs("--momentum", o.momentum != plain.momentum, rule, o.optimizer, {"sgd", "lars"});
  check_belongs("--nesterov", o.nesterov, rule, o.optimizer, {"sgd"});
  check_belongs("--beta1", o.beta1 != plain.beta1, rule, o.optimizer, {"adamw"});
  check_belongs("--beta2", o.beta2 != plain.beta2, rule, o.optimizer, {"adamw"});
  check_belongs("--epsilon", o.epsilon != plain.epsilon, rule, o.optimizer, {"adamw", "lars"});
  check_belongs("--trust-coefficient", o.trust_coefficient != plain.trust_coefficient, rule, o.optimizer,
                {"lars"});
  check_belongs("--base-batch", o.base_batch != plain.base_batch && o.scale_learning_rate == "none",
                "--scale-learning-rate", o.scale_learning_rate, {"linear", "sqrt"});
  check_belongs("--milestones", !o.milestones.empty(), schedule, o.schedule, {"step"});
  check_belongs("--gamma", o.gamma != plain.gamma, schedule, o.schedule, {"step"});
  check_belongs("--final-learning-rate", o.final_learning_rate != plain.final_learning_rate, schedule,
                o.schedule, {"cosine", "polynomial"});
  check_belongs("--power", o.power != plain.power, schedule, o.schedule, {"polynomial"});
  check_belongs("--one-cycle-rise", o.one_cycle_rise != plain.one_cycle_rise, schedule, o.schedule,
                {"one-cycle"});
  check_belongs("--one-cycle-initial-division",
                o.one_cycle_initial_division != plain.one_cycle_initial_division, schedule, o.schedule,
                {"one-cycle"});
  check_belongs("--one-cycle-final-division", o.one_cycle_final_division != plain.one_cycle_final_division,
                schedule, o.schedule, {"one-cycle"});
  check_belongs("--one-cycle-anneal", o.one_cycle_anneal != plain.one_cycle_anneal, schedule, o.schedule,
                {"one-cycle"});
  check_belongs("--tuning-file", !o.tuning_file.empty(), "--backend", o.backend, {"cuda"});
  check_belongs("--lanes", o.lanes != plain.lanes, "--backend", o.backend, {"cuda"});
}

// The whole text as one number from `low` to `high`.
std::optional<int> number_between(std::string_view text, int low, int high) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low || value > high)
    return std::nullopt;
  return value;
}

void check_augmentation(const TrainOptions& o) {
  require(
      o.color_jitter.empty() || o.color_jitter.size() == 4,
      fmt::format("--color-jitter: found {} numbers, expected four: brightness, contrast, saturation, hue",
                  o.color_jitter.size()));
  require(o.color_jitter.empty() || o.color_jitter[3] <= 0.5,
          fmt::format("--color-jitter: found a hue of {}, expected at most 0.5",
                      o.color_jitter.empty() ? 0 : o.color_jitter[3]));
  require(
      o.auto_augment == "none" || o.auto_augment == "trivial" || rand_augment_of(o.auto_augment),
      fmt::format("--auto-augment: found '{}', expected none, trivial, rand or rand:N:M with N from 1 to 14 "
                  "and M from 0 to 30",
                  o.auto_augment));
  require(o.test_resize == 0 || o.size > 0,
          "--test-resize: expected --size too, the pixels a side that a test cuts from the resized image");
  require(o.test_resize == 0 || o.test_resize >= o.size,
          fmt::format("--test-resize: found {}, expected at least --size, {}", o.test_resize, o.size));
}

void check_accumulation(const TrainOptions& o) {
  if (o.accumulate == 1) return;
  require(o.global_batch % o.accumulate == 0,
          fmt::format("--accumulate: found {}, expected a divisor of --global-batch, {}", o.accumulate,
                      o.global_batch));
  require(o.partition == 1, "--accumulate: not possible with --partition, whose parts hold one batch");
  require(o.trace.empty(), "--accumulate: not possible with --trace, which shows steps of one part");
}

}  // namespace

std::optional<RandAugment> rand_augment_of(const std::string& auto_augment) {
  if (auto_augment == "rand") return RandAugment{};
  std::string_view text = auto_augment;
  if (!text.starts_with("rand:")) return std::nullopt;
  text.remove_prefix(5);
  const auto colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto operations = number_between(text.substr(0, colon), 1, 14);
  const auto magnitude = number_between(text.substr(colon + 1), 0, 30);
  if (!operations || !magnitude) return std::nullopt;
  return RandAugment{*operations, *magnitude};
}

void check_train_options(const TrainOptions& o, int ranks) {
  require(!o.model.empty(), "--model is required: the network's name");
  require(!o.data.empty(), "--data is required: an HDF5 file or 'synthetic'");
  require(!o.out.empty(), "--out is required: the folder for results and checkpoints");
  require(o.epochs > 0 || o.steps > 0, "--epochs or --steps is required");
  require(o.epochs == 0 || o.steps == 0,
          fmt::format("--epochs, --steps: found both ({} and {}), expected one", o.epochs, o.steps));
  require(o.global_batch > 0, "--global-batch is required: the samples of a step over all ranks");
  require(ranks % o.partition == 0,
          fmt::format("--partition: found {}, expected a divisor of the number of ranks, {}", o.partition,
                      ranks));
  check_accumulation(o);
  const std::int64_t replicas = ranks / o.partition;
  require(o.global_batch / o.accumulate >= replicas,
          fmt::format("--global-batch: found {}{}, expected at least the number of {}, {}",
                      o.global_batch / o.accumulate, o.accumulate > 1 ? " for a part of --accumulate" : "",
                      o.partition > 1 ? "replicas" : "ranks", replicas));
  require(!o.resume || !o.overwrite, "--resume, --overwrite: found both, expected one");
  require(!o.random_resized_crop || o.crop_padding == 0,
          "--random-resized-crop, --crop-padding: found both, expected one");
  require(!o.nesterov || o.momentum > 0, "--nesterov: found --momentum 0, expected a positive one");
  require(o.precision == "fp32" || o.backend != "reference",
          fmt::format("--precision: found {}, expected fp32 with --backend reference", o.precision));
  require(!o.data_on_device || o.feed == "slice" || ranks == 1,
          "--data-on-device: every rank reads all images, found --feed scatter");
  check_augmentation(o);
  check_belongings(o);
  check_trace(o);
  check_schedule(o);
}

std::int64_t total_steps(const TrainOptions& options, std::int64_t steps_per_epoch) {
  return options.steps > 0 ? options.steps : options.epochs * steps_per_epoch;
}

Schedule make_schedule(const TrainOptions& o, std::int64_t steps_per_epoch) {
  Schedule schedule;
  schedule.kind = schedule_kind(o.schedule);
  schedule.learning_rate = scaled_learning_rate(o.learning_rate, rate_scaling(o.scale_learning_rate),
                                                o.global_batch, o.base_batch);
  schedule.total_steps = total_steps(o, steps_per_epoch);
  schedule.warmup_steps = warmup_steps(o, steps_per_epoch);
  require(schedule.warmup_steps <= schedule.total_steps,
          fmt::format("{}: found {} steps of warm-up, expected at most the run's {}",
                      o.warmup_steps > 0 ? "--warmup-steps" : "--warmup-epochs", schedule.warmup_steps,
                      schedule.total_steps));
  for (const double milestone : o.milestones) {
    schedule.milestones.push_back(in_steps(milestone, o.steps > 0 ? 1 : steps_per_epoch));
  }
  schedule.gamma = o.gamma;
  schedule.final_learning_rate = o.final_learning_rate;
  require(schedule.final_learning_rate <= schedule.learning_rate,
          fmt::format("--final-learning-rate: found {}, expected at most the peak rate {}",
                      schedule.final_learning_rate, schedule.learning_rate));
  schedule.power = o.power;
  schedule.rise = o.one_cycle_rise;
  schedule.initial_division = o.one_cycle_initial_division;
  schedule.final_division = o.one_cycle_final_division;
  schedule.linear_anneal = o.one_cycle_anneal == "linear";
  return schedule;
}

nlohmann::json to_json(const TrainOptions& o) {
  return {{"model", o.model},
          {"data", o.data},
          {"out", o.out},
          {"classes", o.classes},
          {"size", o.size},
          {"limit-train", o.limit_train},
          {"limit-test", o.limit_test},
          {"feed", o.feed},
          {"crop-padding", o.crop_padding},
          {"cutout", o.cutout},
          {"flip", o.flip},
          {"random-resized-crop", o.random_resized_crop},
          {"color-jitter", o.color_jitter},
          {"auto-augment", o.auto_augment},
          {"random-erasing", o.random_erasing},
          {"mixup", o.mixup},
          {"cutmix", o.cutmix},
          {"test-resize", o.test_resize},
          {"data-on-device", o.data_on_device},
          {"epochs", o.epochs},
          {"steps", o.steps},
          {"global-batch", o.global_batch},
          {"accumulate", o.accumulate},
          {"optimizer", o.optimizer},
          {"learning-rate", o.learning_rate},
          {"momentum", o.momentum},
          {"nesterov", o.nesterov},
          {"weight-decay", o.weight_decay},
          {"beta1", o.beta1},
          {"beta2", o.beta2},
          {"epsilon", o.epsilon},
          {"trust-coefficient", o.trust_coefficient},
          {"clip-gradient-norm", o.clip_gradient_norm},
          {"label-smoothing", o.label_smoothing},
          {"ema", o.ema},
          {"sync-batch-norm", o.sync_batch_norm},
          {"schedule", o.schedule},
          {"scale-learning-rate", o.scale_learning_rate},
          {"base-batch", o.base_batch},
          {"warmup-epochs", o.warmup_epochs},
          {"warmup-steps", o.warmup_steps},
          {"milestones", o.milestones},
          {"gamma", o.gamma},
          {"final-learning-rate", o.final_learning_rate},
          {"power", o.power},
          {"one-cycle-rise", o.one_cycle_rise},
          {"one-cycle-initial-division", o.one_cycle_initial_division},
          {"one-cycle-final-division", o.one_cycle_final_division},
          {"one-cycle-anneal", o.one_cycle_anneal},
          {"backend", o.backend},
          {"precision", o.precision},
          {"partition", o.partition},
          {"memory-limit", o.memory_limit},
          {"tuning-file", o.tuning_file},
          {"lanes", o.lanes},
          {"threads", o.threads},
          {"seed", o.seed},
          {"timeout", o.timeout},
          {"checkpoint-every-epochs", o.checkpoint_every_epochs},
          {"checkpoint-every-steps", o.checkpoint_every_steps},
          {"keep-checkpoints", o.keep_checkpoints},
          {"log-every", o.log_every},
          {"trace", o.trace},
          {"eval-every", o.eval_every},
          {"stop-on-divergence", o.stop_on_divergence}};
}

}  // namespace convoy::app
