// Lists the options of `convoy train`, with one row per option. Flags, --config, manifest.json,
// checkpoints and the checks of resumed runs and of ranks all read this table. So an option is
// named only here, in TrainOptions, and in the code that uses it.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <variant>

#include "app/training/train_options.h"

namespace convoy::app {

// Says between which ranks and runs the value of an option must be the same.
enum class Agreement : std::uint8_t {
  // The same on all ranks and in a resumed run, because it influences the weights.
  run,
  // The same on all ranks. A resumed run may change it.
  ranks,
  // All ranks name a file, or none does. The file's name may differ from host to host.
  file,
  // May differ on every rank, because hosts and devices differ.
  rank,
  // The same on all ranks. It only says how to start, for example --resume, so manifests and
  // checkpoints leave it out.
  start
};

// The smallest and the largest value of an option that takes whole numbers.
struct WholeNumbers {
  std::int64_t low = 0, high = std::numeric_limits<std::int64_t>::max();
};

// Says that an option has an effect only if another option, `flag`, has one of these values. If
// `flag` is null, the option always has an effect.
struct OnlyWith {
  const char* flag = nullptr;
  std::array<const char*, 2> values{};  // the second is null if there is only one value
};

template <typename Value>
using Field = Value TrainOptions::*;

struct OptionRow {
  // The flag without dashes, which is also the key in JSON and TOML.
  const char* flag;
  std::variant<Field<bool>, Field<std::int64_t>, Field<std::uint64_t>, Field<double>, Field<std::string>,
               Field<std::vector<double>>, Field<std::vector<std::string>>, Field<kernels::Backend>,
               Field<Precision>, Field<kernels::OptimizerKind>, Field<ScheduleKind>, Field<RateScaling>,
               Field<Anneal>, Field<Feed>, Field<AutoAugmentPolicy>, Field<Lanes>, Field<Parametrisation>>
      field;
  Agreement agreement;
  // The values that are allowed: whole numbers between two bounds, or an interval as text, such as
  // "[0, 1)". With std::monostate nothing is checked.
  std::variant<std::monostate, WholeNumbers, const char*> range;
  const char* placeholder;  // stands for the value in the help text
  const char* help;
  OnlyWith only_with = {};
};

struct OptionGroup {
  const char* title;
  std::span<const OptionRow> rows;
};

std::span<const OptionGroup> train_option_groups();

// Calls visit(row) for every option, in the order of the help text.
template <typename Visit>
void for_each_option(const Visit& visit) {
  for (const OptionGroup& group : train_option_groups())
    for (const OptionRow& row : group.rows) visit(row);
}

// Returns the value of one option in the form in which manifest.json and checkpoints hold it.
nlohmann::json value_of(const TrainOptions& options, const OptionRow& row);

}  // namespace convoy::app
