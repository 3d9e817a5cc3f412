#include "app/commands/train_flags.h"

#include <fmt/format.h>

#include <type_traits>

#include "app/commands/config_file.h"
#include "app/commands/validators.h"
#include "app/training/option_table.h"

namespace convoy::app {
namespace {

void add_flag(CLI::App& verb, const OptionRow& row, bool& value) {
  const std::string on = fmt::format("--{}", row.flag);
  verb.add_flag(value ? fmt::format("{},!--no-{}", on, row.flag) : on, value, row.help);
}

template <typename Value>
CLI::Option* add_value(CLI::App& verb, const OptionRow& row, Value& value) {
  const std::string flag = fmt::format("--{}", row.flag);
  if constexpr (NamedChoice<Value>) {
    return add_choice(verb, flag, value, row.help);
  } else if constexpr (HasText<Value>) {
    return add_text(verb, flag, value, row.help);
  } else if constexpr (std::is_same_v<Value, std::uint64_t>) {
    return verb.add_option(flag, value, row.help)->transform(size_in_bytes());
  } else {
    if (std::string_view(row.placeholder) == "SIZE")
      return verb.add_option(flag, value, row.help)->transform(size_or_zero());
    CLI::Option* option = verb.add_option(flag, value, row.help)->capture_default_str();
    if (const auto* numbers = std::get_if<WholeNumbers>(&row.range))
      option->check(whole_number(numbers->low, numbers->high));
    else if (const auto* interval = std::get_if<const char*>(&row.range))
      option->check(number_in(*interval));
    else
      option->check(not_empty());
    if constexpr (std::is_same_v<Value, std::vector<double>>) option->delimiter(',');
    if constexpr (std::is_same_v<Value, std::vector<std::string>>) option->allow_extra_args(false);
    return option;
  }
}

void add_option(CLI::App& verb, const OptionRow& row, TrainOptions& options) {
  std::visit(
      [&](auto field) {
        auto& value = options.*field;
        if constexpr (std::is_same_v<decltype(value), bool&>) {
          add_flag(verb, row, value);
        } else {
          CLI::Option* option = add_value(verb, row, value);
          if (*row.placeholder != '\0') option->type_name(row.placeholder);
        }
      },
      row.field);
}

}  // namespace

void add_train_flags(CLI::App& verb, TrainOptions& options) {
  for (const OptionGroup& group : train_option_groups()) {
    verb.option_defaults()->group(group.title);
    for (const OptionRow& row : group.rows) add_option(verb, row, options);
  }
  verb.option_defaults()->group("Options");
  add_config_option(verb, {{"epochs", "steps"},
                           {"warmup-epochs", "warmup-steps"},
                           {"checkpoint-every-epochs", "checkpoint-every-steps"}});
}

}  // namespace convoy::app
