// The options of `convoy train`, one row each. Flags, --config, manifest.json, checkpoints and the
// checks of resumed runs and of ranks read this table. So an option is named here, in TrainOptions,
// and in the code that uses it.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <variant>

#include "app/training/train_options.h"

namespace convoy::app {

// Who must agree about an option.
enum class Agreement : std::uint8_t {
  run,    // it decides what the weights become: all ranks, and a resumed run with the first one
  ranks,  // all ranks; a resumed run may change it
  file,   // all ranks name a file or none does; its name may differ from host to host
  rank,   // nobody: hosts and devices differ
  start   // all ranks; it belongs to one start of the run and stays out of manifests and checkpoints
};

// The smallest and the largest number that an option of whole numbers takes.
struct WholeNumbers {
  std::int64_t low = 0, high = std::numeric_limits<std::int64_t>::max();
};

// The option has an effect only if option `flag` has one of these values; always if `flag` is null.
struct OnlyWith {
  const char* flag = nullptr;
  std::array<const char*, 2> values{};  // null where there is one value only
};

template <typename Value>
using Field = Value TrainOptions::*;

struct OptionRow {
  const char* flag;  // without dashes; also the key in JSON and TOML
  std::variant<Field<bool>, Field<std::int64_t>, Field<std::uint64_t>, Field<double>, Field<std::string>,
               Field<std::vector<double>>, Field<std::vector<std::string>>, Field<kernels::Backend>,
               Field<Precision>, Field<kernels::OptimizerKind>, Field<ScheduleKind>, Field<RateScaling>,
               Field<Anneal>, Field<Feed>, Field<AutoAugmentPolicy>>
      field;
  Agreement agreement;
  std::variant<std::monostate, WholeNumbers, const char*> range;  // text: an interval of numbers, "[0, 1)"
  const char* placeholder;                                        // of the value in the help text
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

// The value of one option, as manifests and checkpoints hold it.
nlohmann::json value_of(const TrainOptions& options, const OptionRow& row);

}  // namespace convoy::app
