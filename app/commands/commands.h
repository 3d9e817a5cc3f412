// The verbs of the `convoy` command. Each verb's file registers its flags on the CLI11 application it is
// given and sets the callback that does the work. A callback reports failure by throwing: UsageError for a
// wrong command line (exit status 2), ExitStatus where all is said, any other std::exception for the rest (exit status
// 1); run_command prints the one line.
#pragma once

#include <CLI/CLI.hpp>
#include <vector>

namespace convoy::app {

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
