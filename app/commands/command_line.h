// Explains a wrong command line: names the flag, the value that was found and the value that was
// expected.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

namespace convoy::app {

// Finds mistakes that the parser ignores or describes badly: a flag in the place of a value, too
// few values, a flag given twice, a value for a switch, and a list with an empty element. `words`
// are the arguments after the program's name. Returns the message, or nothing if there is no
// mistake.
std::optional<std::string> find_mistake(const CLI::App& app, const std::vector<std::string>& words);

// Returns one line for an error of the parser. The line names the wrong word and similar names.
std::string explain(const CLI::App& app, const CLI::ParseError& error);

}  // namespace convoy::app
