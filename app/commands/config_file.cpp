#include "app/commands/config_file.h"

#include <fmt/core.h>
#include <toml++/toml.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "app/commands/validators.h"
#include "app/suggest.h"

namespace convoy::app {
namespace {

[[noreturn]] void fail(const std::string& file, const std::string& message) {
  throw CLI::ConfigError(fmt::format("{}: {}", file, message));
}

std::string read(const std::string& file) {
  std::ifstream stream(file);
  if (!stream || std::filesystem::is_directory(file)) fail(file, "cannot be read, expected a TOML file");
  return {std::istreambuf_iterator<char>(stream), {}};
}

[[noreturn]] void fail_in_line(const std::string& file, const std::string& text,
                               const toml::source_region& at, const std::string& expected) {
  std::istringstream lines(text);
  std::string line;
  for (toml::source_index i = 0; i < at.begin.line; ++i) std::getline(lines, line);
  line.erase(line.find_last_not_of(" \t\r") + 1);
  fail(file, fmt::format("line {}: found '{}', expected {}", at.begin.line, line, expected));
}

toml::table parse(const std::string& file, const std::string& text) {
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    fail_in_line(file, text, error.source(), fmt::format("TOML ({})", error.description()));
  }
}

// Returns a value as the command line would spell it.
std::string text_of(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  std::ostringstream text;
  node.visit([&](const auto& value) { text << value; });
  return text.str();
}

std::vector<std::string> inputs_of(const toml::node& node) {
  if (!node.is_array()) return {text_of(node)};
  std::vector<std::string> inputs;
  for (const toml::node& element : *node.as_array()) inputs.push_back(text_of(element));
  return inputs;
}

std::vector<std::string> keys_of(const CLI::App& verb) {
  std::vector<std::string> keys;
  for (const CLI::Option* option : verb.get_options()) {
    if (option->get_configurable() && !option->get_lnames().empty()) keys.push_back(option->get_lnames()[0]);
  }
  return keys;
}

void apply(CLI::Option& option, const std::string& key, const std::vector<std::string>& inputs,
           const std::string& file) {
  const auto wrong = [&](const std::string& message) {
    fail(file, fmt::format("key '{}': {}", key, message));
  };
  if (inputs.size() != 1 && option.get_items_expected_max() <= 1)
    wrong(fmt::format("found {} values, expected one", inputs.size()));
  for (const std::string& input : inputs)
    if (input.starts_with('[') || input.starts_with('{'))
      wrong(fmt::format("found '{}', expected a value or one list of values", input));
  if (inputs.empty()) return;  // keep the default, which is empty for every list
  const bool flag = option.get_expected_min() == 0;
  if (flag && inputs[0] != "true" && inputs[0] != "false")
    wrong(fmt::format("found '{}', expected true or false", inputs[0]));
  for (const std::string& input : inputs)
    if (has_empty_place(option, input))
      wrong(fmt::format("found '{}', expected a value at every comma", input));
  try {
    if (flag) {
      option.add_result(option.get_flag_value(key, inputs[0]));
    } else {
      option.add_result(inputs);
    }
    option.run_callback();
  } catch (const CLI::ParseError& error) {
    const std::string text = error.what(), prefix = option.get_name() + ": ";
    wrong(text.starts_with(prefix) ? text.substr(prefix.size()) : text);
  }
}

CLI::Option& option_of(CLI::App& verb, const std::string& key, const std::string& source) {
  auto* option = verb.get_option_no_throw("--" + key);
  if (option == nullptr || !option->get_configurable())
    fail(source, fmt::format("unknown key '{}'{}", key, did_you_mean(key, keys_of(verb))));
  return *option;
}

bool displaced(const CLI::App& verb, const std::string& key, const ExclusiveFlags& exclusive,
               const std::set<std::string>& on_command_line) {
  for (const auto& flags : exclusive) {
    const auto given = [&](const auto& flag) { return on_command_line.count(flag) > 0; };
    if (std::find(flags.begin(), flags.end(), key) != flags.end() &&
        std::any_of(flags.begin(), flags.end(), given)) {
      return true;
    }
  }
  const auto* option = verb.get_option_no_throw("--" + key);
  return option != nullptr && on_command_line.count(option->get_lnames()[0]) > 0;
}

void load(CLI::App& verb, const std::string& file, const ExclusiveFlags& exclusive) {
  const std::string text = read(file);
  std::set<std::string> on_command_line;
  for (const auto& key : keys_of(verb))
    if (verb.get_option("--" + key)->count() > 0) on_command_line.insert(key);
  for (const auto& [name, node] : parse(file, text)) {
    const std::string key(name.str());
    if (node.is_table() || node.is_array_of_tables())
      fail_in_line(file, text, node.source(), "key = value: tables are not used here");
    CLI::Option& option = option_of(verb, key, file);
    if (!displaced(verb, key, exclusive, on_command_line)) apply(option, key, inputs_of(node), file);
  }
}

}  // namespace

void apply_values(CLI::App& verb, const std::string& key, const std::vector<std::string>& values,
                  const std::string& source) {
  apply(option_of(verb, key, source), key, values, source);
}

std::vector<ConfigRow> read_rows(const std::string& file, const std::string& name) {
  const std::string text = read(file);
  const toml::table table = parse(file, text);
  std::vector<ConfigRow> rows;
  for (const auto& [key, node] : table) {
    if (key.str() != name || !node.is_array_of_tables())
      fail_in_line(file, text, node.source(), fmt::format("[[{}]] and nothing else", name));
    for (const toml::node& element : *node.as_array()) {
      ConfigRow& row = rows.emplace_back();
      for (const auto& [option, value] : *element.as_table())
        row.emplace_back(std::string(option.str()), inputs_of(value));
    }
  }
  return rows;
}

void add_config_option(CLI::App& verb, ExclusiveFlags exclusive) {
  if (auto* help = verb.get_help_ptr()) help->configurable(false);
  verb.add_option_function<std::string>(
          "--config",
          [&verb, exclusive = std::move(exclusive)](const std::string& file) { load(verb, file, exclusive); },
          "flags from a TOML file: long names without dashes; the command line wins")
      ->type_name("FILE")
      ->configurable(false);
}

}  // namespace convoy::app
