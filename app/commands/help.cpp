#include "app/commands/help.h"

#include <string>

namespace convoy::app {
namespace {

constexpr std::size_t kNameColumns = 30, kColumns = 120;

std::string wrapped(std::string text, std::size_t width) {
  for (std::size_t begin = 0; text.size() - begin > width;) {
    const std::size_t space = text.rfind(' ', begin + width);
    if (space == std::string::npos || space < begin) break;
    text[space] = '\n';
    begin = space + 1;
  }
  return text;
}

class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() {
    column_width(kNameColumns);
    label("INT", "N");
    label("UINT", "N");
  }

  // Separates groups of flags by one empty line, where CLI11 prints two.
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    return CLI::detail::find_and_replace(CLI::Formatter::make_help(app, name, mode), "\n\n\n", "\n\n");
  }

  // Removes the text "{false}", which CLI11 adds to the name of a switch that turns something off.
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    return CLI::detail::find_and_replace(CLI::Formatter::make_option_name(option, is_positional), "{false}",
                                         "");
  }

  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_positional()) return "";
    // CLI11 writes the choices after the type, as in TEXT:{one|another}. Keep only the choices.
    std::string type = option->get_type_name();
    if (const auto choices = type.find('{'); choices != std::string::npos) type = type.substr(choices);
    std::string text = type.empty() ? "" : " " + get_label(type);
    const std::string standard = option->get_default_str();
    if (!standard.empty() && standard != "[]") text += "=" + standard;
    const bool several = option->get_expected_max() == CLI::detail::expected_max_vector_size;
    return several && !type.ends_with("...") ? text + " ..." : text;
  }

  std::string make_option_desc(const CLI::Option* option) const override {
    return wrapped(option->get_description() + (option->get_required() ? " (required)" : ""),
                   kColumns - kNameColumns);
  }
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_formatter() { return std::make_shared<HelpFormatter>(); }

}  // namespace convoy::app
