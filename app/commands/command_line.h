// What is wrong with a command line, in the words of all our messages: which flag, what was found, what was expected.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

namespace convoy::app {

// What the parser would pass over or put in words of its own: a flag where a value should be, a value too few, a flag
// given twice, a flag without values that is given one, a list with an empty place. `words` are those behind the program's name.
std::optional<std::string> find_mistake(const CLI::App& app, const std::vector<std::string>& words);

// What the parser's error means: which word it stumbled over and what is near it.
std::string explain(const CLI::App& app, const CLI::ParseError& error);

}  // namespace convoy::app
