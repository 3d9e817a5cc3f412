#include "app/commands/config_file.h"

#include <fmt/core.h>

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

std::stringstream read(const std::string& file) {
  std::ifstream stream(file);
  std::stringstream text;
  if (std::filesystem::is_directory(file) || !stream) fail(file, "cannot be read, expected a TOML file");
  // The byte-order mark that some editors put first is no part of the first key.
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  std::string content{std::istreambuf_iterator<char>(stream), {}};
  if (content.starts_with(kByteOrderMark)) content.erase(0, kByteOrderMark.size());
  text << content;
  return text;
}

struct Quotes {
  bool open = false;  // the last one does not close
  bool hash = false;  // '#' between them
};

// Of a value; behind a '#' outside of quotes the rest is a comment.
Quotes quotes_of(const std::string& value) {
  char quote = 0;
  bool hash = false;
  for (const char c : value) {
    if (quote == 0 && c == '#') break;
    hash = hash || c == '#';
    if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
    } else if (c == quote) {
      quote = 0;
    }
  }
  return {quote != 0, hash};
}

// CLI11 passes over or mends what it does not understand; a typo in a training run's file must not pass.
void check_lines(const std::string& file, std::istream& stream) {
  std::string line;
  std::set<std::string> keys;
  for (int number = 1; std::getline(stream, line); ++number) {
    CLI::detail::trim(line);
    if (line.empty() || line.front() == '#') continue;
    const auto wrong = [&](const std::string& expected) {
      fail(file, fmt::format("line {}: found '{}', expected {}", number, line, expected));
    };
    if (line.front() == '[') wrong("key = value: tables are not used here");
    const auto equals = line.find('=');
    if (equals == std::string::npos) wrong("key = value");
    const auto key = CLI::detail::trim_copy(line.substr(0, equals));
    const auto value = CLI::detail::trim_copy(line.substr(equals + 1));
    if (key.empty() || value.empty() || value.front() == '#') wrong("key = value");
    if (key.find_first_of(".;\"'") != std::string::npos) wrong("a plain key: a flag without its dashes");
    const Quotes quotes = quotes_of(value);
    if (quotes.open) wrong("a quoted value that closes on its line");
    if (quotes.hash) wrong("no '#' inside a quoted value");
    if (value.front() == '[' && value.find(']') == std::string::npos)
      wrong("an array that closes on its line");
    if (!keys.insert(key).second) fail(file, fmt::format("key '{}' is given twice", key));
  }
}

std::vector<std::string> keys_of(const CLI::App& verb) {
  std::vector<std::string> keys;
  for (const CLI::Option* option : verb.get_options()) {
    if (option->get_configurable() && !option->get_lnames().empty()) keys.push_back(option->get_lnames()[0]);
  }
  return keys;
}

void apply(CLI::Option& option, const CLI::ConfigItem& item, const std::string& file) {
  const auto wrong = [&](const std::string& message) {
    fail(file, fmt::format("key '{}': {}", item.name, message));
  };
  if (item.inputs.size() != 1 && option.get_items_expected_max() <= 1) {
    wrong(fmt::format("found {} values, expected one", item.inputs.size()));
  }
  const bool flag = option.get_expected_min() == 0;
  if (flag && item.inputs[0] != "true" && item.inputs[0] != "false") {
    wrong(fmt::format("found '{}', expected true or false", item.inputs[0]));
  }
  for (const std::string& input : item.inputs)
    if (has_empty_place(option, input))
      wrong(fmt::format("found '{}', expected a value at every comma", input));
  try {
    if (flag) {
      option.add_result(option.get_flag_value(item.name, item.inputs[0]));
    } else {
      option.add_result(item.inputs);
    }
    option.run_callback();
  } catch (const CLI::ParseError& error) {
    const std::string text = error.what(), prefix = option.get_name() + ": ";
    wrong(text.starts_with(prefix) ? text.substr(prefix.size()) : text);
  }
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
  std::stringstream text = read(file);
  check_lines(file, text);
  text.clear();
  text.seekg(0);
  std::set<std::string> on_command_line;
  for (const auto& key : keys_of(verb)) {
    if (verb.get_option("--" + key)->count() > 0) on_command_line.insert(key);
  }
  for (const auto& item : CLI::ConfigTOML().from_config(text)) {
    auto* option = verb.get_option_no_throw("--" + item.name);
    if (option == nullptr || !option->get_configurable()) {
      fail(file, fmt::format("unknown key '{}'{}", item.name, did_you_mean(item.name, keys_of(verb))));
    }
    if (!displaced(verb, item.name, exclusive, on_command_line)) apply(*option, item, file);
  }
}

}  // namespace

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
