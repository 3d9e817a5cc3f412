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

// Thrown by a callback that ends well but not with status 0: a run that checkpointed on a signal ends
// with 75.
struct ExitStatus {
  int status;
};

// Adds a verb to the application: app.add_subcommand(...), its flags, its callback. New verbs are declared
// here and listed in commands.cpp.
using AddVerb = void (*)(CLI::App& app);
void add_bench_command(CLI::App& app);
void add_data_command(CLI::App& app);
void add_train_command(CLI::App& app);
void add_evaluate_command(CLI::App& app);
void add_info_command(CLI::App& app);
void add_partition_command(CLI::App& app);
void add_simulate_command(CLI::App& app);

// Parses the command line, runs the verb and returns the process's exit status: 0, 1 for a failure, 2 for a
// wrong command line, or what the verb threw as ExitStatus. Prints at most one line on standard error.
int run_command(int argc, char** argv);

// The same with other verbs than the program's, for tests.
int run_command(int argc, char** argv, const std::vector<AddVerb>& verbs);

}  // namespace convoy::app
