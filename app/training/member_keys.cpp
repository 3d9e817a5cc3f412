// Implements member_keys.h. Members are the trainings that `convoy train --members` runs together.
#include "app/training/member_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

#include "app/errors.h"
#include "app/training/option_table.h"

namespace convoy::app {
namespace {

using nlohmann::json;

// The options that decide how a step is compiled. Members that differ in one of them cannot share a
// compiled step: they have different shapes (member_keys.h).
constexpr std::string_view kOfTheStep[] = {
    "model",           "reinitialise", "optimizer", "loss-weights",      "drop-path",
    "parametrisation", "base-width",   "freeze",    "freeze-batch-norm", "rate"};

// The options whose values a step or the loader reads while it runs. Members that differ only in
// these options share a compiled step.
constexpr std::string_view kReadByTheStep[] = {"init",
                                               "crop-padding",
                                               "cutout",
                                               "flip",
                                               "random-resized-crop",
                                               "color-jitter",
                                               "auto-augment",
                                               "random-erasing",
                                               "mixup",
                                               "cutmix",
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

// If one of these options is 0, the compiled step leaves something out. So members with 0 and
// members with another value cannot share a compiled step.
constexpr double TrainOptions::*kSwitches[] = {
    &TrainOptions::momentum,            // 0: no velocities of the parameters
    &TrainOptions::ema,                 // 0: no moving averages of the parameters
    &TrainOptions::clip_gradient_norm,  // 0: the norm of the gradient is not computed
};

// Returns why the trainings of one run must not differ in the options of this group.
const char* reason_of(std::string_view group) {
  if (group == "Length") return "all members take the same steps";
  if (group == "Optimizer") return "a member trains on one rank";
  if (group == "Output") return "all members are tested and saved together";
  if (group == "Model and data") return "all members train on the same images";
  return "all members run in the same processes";
}

bool among(std::span<const std::string_view> keys, std::string_view key) {
  return std::ranges::find(keys, key) != keys.end();
}

}  // namespace

std::string shape_of(const TrainOptions& options) {
  std::string text;
  for_each_option([&](const OptionRow& row) {
    if (among(kOfTheStep, row.flag)) text += value_of(options, row).dump() + " ";
  });
  for (const auto value : kSwitches) text += options.*value > 0 ? '1' : '0';
  return text + (options.mixes() ? '1' : '0');
}

std::vector<std::string> keys_that_differ(const std::vector<TrainOptions>& options) {
  std::vector<std::string> keys;
  for_each_option([&](const OptionRow& row) {
    const json first = value_of(options.front(), row);
    if (std::ranges::any_of(options, [&](const TrainOptions& o) { return value_of(o, row) != first; }))
      keys.emplace_back(row.flag);
  });
  return keys;
}

void check_no_member_twice(const std::vector<TrainOptions>& options) {
  std::map<std::string, int> seen;
  for (int member = 0; member < std::ssize(options); ++member) {
    const auto [at, inserted] =
        seen.emplace(to_json(options[static_cast<std::size_t>(member)]).dump(), member);
    if (!inserted)
      throw UsageError(
          fmt::format("--members: members {} and {} have the same values, expected different ones",
                      at->second + 1, member + 1));
  }
}

void check_member_key(const std::string& key) {
  for (const OptionGroup& group : train_option_groups())
    for (const OptionRow& row : group.rows) {
      if (key != row.flag) continue;
      if (among(kOfTheStep, key) || among(kReadByTheStep, key)) return;
      throw UsageError(
          fmt::format("--members: members must not differ in '{}': {}", key, reason_of(group.title)));
    }
  throw UsageError(
      fmt::format("--members: found '{}', expected the name of a flag of convoy train, such as seed "
                  "or learning-rate, or width",
                  key));
}

}  // namespace convoy::app
