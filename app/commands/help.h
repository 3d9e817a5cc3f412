// Formats the help texts of all verbs.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>

namespace convoy::app {

// Returns a formatter that writes "--flag NAME=default    description (required)" in lines of up to
// 120 columns. A flag's choices appear as {one|another}, and a whole number appears as N. Verbs
// inherit the formatter from the application that they are added to.
std::shared_ptr<CLI::FormatterBase> help_formatter();

}  // namespace convoy::app
