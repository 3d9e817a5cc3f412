// The verbs of the `convoy` command. Each verb's file registers its flags on the CLI11 application it is
// given and sets the callback that does the work. A callback reports failure by throwing: UsageError for a
// wrong command line (exit status 2), any other std::exception for the rest (exit status 1); run_command
// prints the one line.
#pragma once

#include <CLI/CLI.hpp>
#include <stdexcept>

namespace convoy::app {

struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Parses the command line, runs the verb and returns the process's exit status.
int run_command(int argc, char** argv);

}  // namespace convoy::app
