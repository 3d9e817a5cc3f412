#include "app/commands/command_line.h"

#include <fmt/core.h>

#include <map>

#include "app/commands/validators.h"
#include "app/suggest.h"

namespace convoy::app {
namespace {

std::vector<std::string> verbs_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* verb : app.get_subcommands({})) names.push_back(verb->get_name());
  return names;
}

std::vector<std::string> flags_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* option : app.get_options()) {
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

const CLI::Option* option_of(const CLI::App& verb, const std::string& flag) {
  return flag.starts_with("--") ? verb.get_option_no_throw(flag) : nullptr;
}

// Returns "one of slice, scatter" if the option has the choices "{slice|scatter}". Otherwise
// returns "a value" with the description of the option.
std::string expected_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const auto open = type.find('{');
  if (open == std::string::npos) return fmt::format("a value ({})", option.get_description());
  std::string names = "one of ";
  for (const char c : type.substr(open + 1, type.find('}') - open - 1))
    names += c == '|' ? ", " : std::string(1, c);
  return names;
}

// Reads the words of a command line in the same order as the parser, and stops at the first
// mistake.
class Reader {
 public:
  Reader(const CLI::App& app, const std::vector<std::string>& words) : verb_(&app), words_(words) {}

  std::optional<std::string> run() {
    for (; at_ < words_.size() && words_[at_] != "--" && !mistake_; ++at_) {
      const std::string flag = words_[at_].substr(0, words_[at_].find('='));
      const CLI::Option* option = option_of(*verb_, flag);
      if (option == nullptr)
        enter_verb(words_[at_]);
      else if (option->get_expected_min() == 0)
        read_switch(*option, flag);
      else
        read_value(*option, flag);
    }
    return mistake_;
  }

 private:
  void enter_verb(const std::string& word) {
    for (const CLI::App* verb : verb_->get_subcommands({}))
      if (verb->get_name() == word) verb_ = verb;
  }

  std::optional<std::string> value_after_equals() const {
    const auto equals = words_[at_].find('=');
    if (equals == std::string::npos) return std::nullopt;
    return words_[at_].substr(equals + 1);
  }

  // Reads a switch. Two different spellings, such as --x and --no-x, are a mistake, because one
  // reverses the other.
  void read_switch(const CLI::Option& option, const std::string& flag) {
    if (const auto value = value_after_equals(); value && *value != "true" && *value != "false")
      mistake_ = fmt::format("{}: found '{}', expected true or false", flag, *value);
    const auto [earlier, first] = given_.try_emplace(&option, flag);
    if (!first && earlier->second != flag)
      mistake_ = fmt::format("{}: found {} too, expected one of them", earlier->second, flag);
  }

  void read_value(const CLI::Option& option, const std::string& flag) {
    std::string value;
    if (const auto own = value_after_equals()) {
      value = *own;
    } else if (at_ + 1 == words_.size()) {
      mistake_ = fmt::format("{}: found no value, expected {}", flag, expected_of(option));
    } else if (option_of(*verb_, words_[at_ + 1]) != nullptr) {
      mistake_ =
          fmt::format("{}: found the flag '{}', expected {}", flag, words_[at_ + 1], expected_of(option));
    } else {
      value = words_[++at_];
    }
    if (!mistake_ && has_empty_place(option, value))
      mistake_ = fmt::format("{}: found '{}', expected a value at every comma", flag, value);
    if (option.get_items_expected_max() > 1) return;
    const auto [earlier, first] = given_.try_emplace(&option, value);
    if (!first && !mistake_)
      mistake_ = fmt::format("{}: found twice ('{}' and '{}'), expected once", flag, earlier->second, value);
  }

  const CLI::App* verb_;
  const std::vector<std::string>& words_;
  std::size_t at_ = 0;
  // For each option that was given: the spelling if it is a switch, else the value.
  std::map<const CLI::Option*, std::string> given_;
  std::optional<std::string> mistake_;
};

}  // namespace

std::optional<std::string> find_mistake(const CLI::App& app, const std::vector<std::string>& words) {
  return Reader(app, words).run();
}

// CLI11's own message lists all unexpected words. This message names only the wrong word, with
// similar names.
std::string explain(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* verb = &app;
  std::string path = "convoy";
  while (true) {
    const auto left_over = verb->remaining(false);
    if (!left_over.empty()) {
      const std::string& word = left_over[0];
      if (word.starts_with('-')) {
        const auto flag = word.substr(0, word.find('='));
        if (flag == "-h") return fmt::format("unknown flag '-h' of {}; did you mean '--help'?", path);
        return fmt::format("unknown flag '{}' of {}{}", flag, path, did_you_mean(flag, flags_of(*verb)));
      }
      const auto verbs = verbs_of(*verb);
      if (!verbs.empty()) {  // the first word is wrong, even if a valid verb follows
        if (word == "help") return fmt::format("unknown verb 'help' of {}; did you mean '--help'?", path);
        return fmt::format("unknown verb '{}' of {}{}", word, path, did_you_mean(word, verbs));
      }
      return fmt::format("found '{}', which {} does not expect", word, path);
    }
    const auto parsed = verb->get_subcommands();
    if (parsed.empty()) break;
    verb = parsed.front();
    path += " " + verb->get_name();
  }
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && !verbs_of(*verb).empty()) {
    return fmt::format("{} expects a verb; {} --help lists them", path, path);
  }
  return error.what();
}

}  // namespace convoy::app
