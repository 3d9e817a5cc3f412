#include "app/training/train_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "app/errors.h"
#include "app/model/import/model_file.h"
#include "app/model/zoo/zoo.h"
#include "app/training/option_table.h"
#include "app/training/parameter_rates.h"
#include "data/loader/order.h"
#include "data/path_kind.h"
#include "kernels/device/sample_transform.h"

namespace convoy::app {
namespace {

void require(bool holds, const std::string& message) {
  if (!holds) throw UsageError(message);
}

// Converts a position in epochs or steps to steps, rounded to a whole number.
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
  require(o.schedule != ScheduleKind::step || has_milestones,
          "--milestones: --schedule step expects at least one");
  const auto out_of_order =
      std::adjacent_find(o.milestones.begin(), o.milestones.end(), std::greater_equal<>());
  if (out_of_order != o.milestones.end()) {
    throw UsageError(fmt::format("--milestones: found {} before {}, expected ascending numbers",
                                 *out_of_order, *(out_of_order + 1)));
  }
}

// Refuses the name of a trace file if its folder does not exist or if it is a folder itself.
// Otherwise the run would fail in the middle, when it writes the file.
void check_trace(const TrainOptions& o) {
  if (o.trace.empty()) return;
  const std::filesystem::path folder = std::filesystem::path(o.trace).parent_path();
  require(folder.empty() || data::is_folder(folder),
          fmt::format("--trace {}: no folder {}", o.trace, folder.string()));
  require(!data::is_folder(o.trace),
          fmt::format("--trace {}: is a folder, expected the name of a file", o.trace));
}

// Refuses options that have no effect because of another option, such as beta1 without adamw.
void check_belongings(const TrainOptions& o) {
  const TrainOptions plain;
  const nlohmann::json values = to_json(o), defaults = to_json(plain);
  const std::string data = data_source(o.data) == DataSource::synthetic ? o.data : "FILE";
  check_belongs("--classes", o.classes != plain.classes, "--data", data, {"synthetic"});
  for_each_option([&](const OptionRow& row) {
    if (row.only_with.flag == nullptr) return;
    std::vector<std::string_view> fitting;
    for (const char* value : row.only_with.values)
      if (value != nullptr) fitting.emplace_back(value);
    const std::string other = row.only_with.flag;
    check_belongs(fmt::format("--{}", row.flag), values.at(row.flag) != defaults.at(row.flag), "--" + other,
                  values.at(other).get<std::string>(), fitting);
  });
}

// Parses the whole text as one number from `low` to `high`. Returns nothing if it is no such
// number.
std::optional<int> number_between(std::string_view text, int low, int high) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low || value > high)
    return std::nullopt;
  return value;
}

void check_model(const TrainOptions& o) {
  require(o.drop_path >= 0 || o.drop_path == -1,
          fmt::format("--drop-path: found {}, expected a share in [0, 1), or -1", o.drop_path));
  require(o.loss_weights.empty() || std::ranges::any_of(o.loss_weights, [](double w) { return w > 0; }),
          "--loss-weights: found only zeros, which train nothing, expected a positive one");
  require(!o.reinitialise || is_model_file(o.model),
          fmt::format("--reinitialise: expected --model FILE.onnx, whose weights it replaces, found '{}'",
                      o.model));
}

void check_parametrisation(const TrainOptions& o) {
  if (o.parametrisation == Parametrisation::standard) return;
  require(width_of(o.model) > 0,
          fmt::format("--parametrisation: mup needs a network with a width, such as wrn28_10, but found "
                      "--model {}",
                      o.model));
  require(o.optimizer != kernels::OptimizerKind::lars,
          "--parametrisation: mup has no rule for --optimizer lars, expected sgd or adamw");
}

void check_augmentation(const TrainOptions& o) {
  require(
      o.color_jitter.empty() || o.color_jitter.size() == 4,
      fmt::format("--color-jitter: found {} numbers, expected four: brightness, contrast, saturation, hue",
                  o.color_jitter.size()));
  require(o.color_jitter.empty() || o.color_jitter[3] <= 0.5,
          fmt::format("--color-jitter: found a hue of {}, expected at most 0.5",
                      o.color_jitter.empty() ? 0 : o.color_jitter[3]));
  const auto left =
      kernels::kMostImageOps - std::ranges::count_if(o.color_jitter, [](double f) { return f != 0; });
  require(!o.auto_augment.numbers || o.auto_augment.numbers->operations <= left,
          fmt::format("--auto-augment: found '{}', expected at most {} operations with this --color-jitter",
                      o.auto_augment.text(), left));
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
  require(o.global_batch / o.accumulate % o.images_together() == 0,
          fmt::format("--accumulate: found {} and so {} images in a part, expected an even number, since "
                      "--mixup and --cutmix mix pairs of images",
                      o.accumulate, o.global_batch / o.accumulate));
  require(o.partition == 1, "--accumulate cannot be combined with --partition, whose stages hold one batch");
  require(o.trace.empty(), "--accumulate cannot be combined with --trace, which shows undivided steps");
}

void check_members(const TrainOptions& o) {
  require(o.halving == 0 || !o.members.empty(),
          "--halving: expected --members too, whose worse half it stops");
  if (o.members.empty()) return;
  require(o.partition == 1, "--members cannot be combined with --partition: a rank trains its members alone");
  require(o.trace.empty(),
          "--members cannot be combined with --trace, which shows the steps of one training");
  require(o.feed == Feed::slice,
          "--members cannot be combined with --feed scatter: ranks read different batches");
}

}  // namespace

DataSource data_source(std::string_view data) {
  return data == "synthetic" ? DataSource::synthetic : DataSource::file;
}

std::string AutoAugmentPolicy::text() const {
  const std::string name = name_of(kind);
  return numbers ? fmt::format("{}:{}:{}", name, numbers->operations, numbers->magnitude) : name;
}

AutoAugmentPolicy AutoAugmentPolicy::parse(const std::string& text) {
  if (const auto kind = find_choice<data::AutoAugment>(text)) return {*kind, std::nullopt};
  constexpr std::string_view kNumbers = "rand:";
  const std::string_view numbers =
      text.starts_with(kNumbers) ? std::string_view(text).substr(kNumbers.size()) : std::string_view();
  if (const auto colon = numbers.find(':'); colon != std::string_view::npos) {
    const auto operations = number_between(numbers.substr(0, colon), 1, kernels::kMostImageOps);
    const auto magnitude = number_between(numbers.substr(colon + 1), 0, 30);
    if (operations && magnitude) return {data::AutoAugment::rand, RandAugment{*operations, *magnitude}};
  }
  throw std::invalid_argument(fmt::format(
      "found '{}', expected none, trivial, rand or rand:N:M with N from 1 to {} and M from 0 to 30", text,
      kernels::kMostImageOps));
}

void check_precision(kernels::Backend backend, Precision precision) {
  require(backend == kernels::Backend::cuda || precision == Precision::fp32,
          fmt::format("--precision: found {}, expected fp32 with --backend {}", name_of(precision),
                      name_of(backend)));
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
  check_members(o);
  require(o.host_memory <= 0 || o.memory_limit > 0,
          "--host-memory: expected --memory-limit too, as activations wait there only under a limit");
  require(o.host_memory <= 0 || o.partition == 1,
          "--host-memory cannot be combined with --partition, which places activations on other devices");
  require(o.host_memory <= 0 || o.members.empty(), "--host-memory cannot be combined with --members");
  const std::int64_t replicas = ranks / o.partition;
  require(o.global_batch / o.accumulate >= replicas * o.images_together(),
          fmt::format("--global-batch: found {}{}, expected at least {}, {} for each {}",
                      o.global_batch / o.accumulate, o.accumulate > 1 ? " for a part of --accumulate" : "",
                      replicas * o.images_together(), o.mixes() ? "a pair of images to mix" : "one image",
                      o.partition > 1 ? "replica" : "rank"));
  require(!o.resume || !o.overwrite, "--resume, --overwrite: found both, expected one");
  require(!o.random_resized_crop || o.crop_padding == 0,
          "--random-resized-crop, --crop-padding: found both, expected one");
  require(!o.nesterov || o.momentum > 0, "--nesterov: found --momentum 0, expected a positive one");
  check_precision(o.backend, o.precision);
  require(!o.data_on_device || o.feed == Feed::slice || ranks == 1,
          "--data-on-device cannot be combined with --feed scatter on several ranks: every rank reads all "
          "images");
  check_model(o);
  check_parametrisation(o);
  check_augmentation(o);
  check_rates(o);
  check_belongings(o);
  check_trace(o);
  check_schedule(o);
}

std::int64_t TrainOptions::images_of_replica(int replicas) const {
  return data::range_of_rank(global_batch / accumulate, replicas, 0, images_together()).count;
}

std::int64_t total_steps(const TrainOptions& options, std::int64_t steps_per_epoch) {
  return options.steps > 0 ? options.steps : options.epochs * steps_per_epoch;
}

LearningRateSchedule make_schedule(const TrainOptions& o, std::int64_t steps_per_epoch) {
  LearningRateSchedule schedule;
  schedule.kind = o.schedule;
  schedule.learning_rate =
      scaled_learning_rate(o.learning_rate, o.scale_learning_rate, o.global_batch, o.base_batch);
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
  schedule.anneal = o.one_cycle_anneal;
  return schedule;
}

}  // namespace convoy::app
