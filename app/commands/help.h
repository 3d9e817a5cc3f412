// How the help of every verb looks.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>

namespace convoy::app {

// "--flag NAME=default    what it is for (required)": choices as {one|another}, counts as N, lines of up to 120 columns.
// Verbs take it over from the application that they are added to.
std::shared_ptr<CLI::FormatterBase> help_formatter();

}  // namespace convoy::app
