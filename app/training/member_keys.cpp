#include "app/training/member_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "app/errors.h"
#include "app/training/option_table.h"

namespace convoy::app {
namespace {

using nlohmann::json;

// The options in which members may differ. A step or the loader reads their values while it runs,
// so they do not change the compiled step, which all members share.
constexpr std::string_view kMayDiffer[] = {"init",
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

// Returns why members must not differ in the options of this group that are not in kMayDiffer.
const char* reason_of(std::string_view group) {
  if (group == "Length") return "all members take the same steps";
  if (group == "Execution") return "all members run in the same processes";
  if (group == "Output") return "all members are tested and saved together";
  if (group == "Model and data") return "all members train one network on the same images";
  return "it changes the operations of the step, which all members share";
}

struct NumberThatSwitches {
  const char* key;
  double TrainOptions::*value;
  // The part of the step that exists only if the number is not 0.
  const char* what;
};
constexpr NumberThatSwitches kSwitches[] = {
    {"momentum", &TrainOptions::momentum, "a velocity of the parameters"},
    {"ema", &TrainOptions::ema, "a moving average of the parameters"},
    {"clip-gradient-norm", &TrainOptions::clip_gradient_norm, "the norm of the gradient"}};

[[noreturn]] void refuse_mixture(const char* key, const std::string& first, int other,
                                 const std::string& value, const char* what) {
  throw UsageError(fmt::format(
      "--members: {}: found {} for member 1 and {} for member {}, but 0 leaves out {}; expected 0 "
      "for all members or for none",
      key, first, value, other + 1, what));
}

}  // namespace

void check_member_structure(const std::vector<TrainOptions>& options) {
  const TrainOptions& first = options.front();
  for (int member = 1; member < std::ssize(options); ++member) {
    const TrainOptions& other = options[static_cast<std::size_t>(member)];
    for (const auto& [key, value, what] : kSwitches)
      if ((first.*value > 0) != (other.*value > 0))
        refuse_mixture(key, fmt::format("{}", first.*value), member, fmt::format("{}", other.*value), what);
    const auto mix = [](const TrainOptions& o) { return std::max(o.mixup, o.cutmix); };
    if ((mix(first) > 0) != (mix(other) > 0))
      refuse_mixture("mixup, cutmix", fmt::format("{}", mix(first)), member, fmt::format("{}", mix(other)),
                     "the mixing of images");
  }
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
      if (std::ranges::find(kMayDiffer, key) != std::end(kMayDiffer)) return;
      throw UsageError(
          fmt::format("--members: members must not differ in '{}': {}", key, reason_of(group.title)));
    }
  throw UsageError(
      fmt::format("--members: found '{}', expected the name of a flag of convoy train, such as seed "
                  "or learning-rate",
                  key));
}

}  // namespace convoy::app
