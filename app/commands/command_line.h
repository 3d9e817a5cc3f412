// Explains a wrong command line: which flag, the value that was found, and the one that was
// expected.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

namespace convoy::app {

// Finds mistakes that the parser passes over or words differently: a flag in the place of a value,
// too few values, a flag given twice, a value for a switch, a list with an empty place. `words` are
// those after the program's name. Returns nothing if there is none.
std::optional<std::string> find_mistake(const CLI::App& app, const std::vector<std::string>& words);

// Turns the parser's error into one line that names the wrong word and what is near it.
std::string explain(const CLI::App& app, const CLI::ParseError& error);

}  // namespace convoy::app
