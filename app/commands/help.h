// Formats the help of every verb.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>

namespace convoy::app {

// Writes "--flag NAME=default    what it is for (required)" with choices as {one|another} and
// counts as N, in lines of up to 120 columns. Verbs inherit it from the application that they are
// added to.
std::shared_ptr<CLI::FormatterBase> help_formatter();

}  // namespace convoy::app
