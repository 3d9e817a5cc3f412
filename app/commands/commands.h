// The verbs of the `convoy` command. The file of a verb registers its flags on the given CLI11
// application and sets the callback that does the work.
// A callback fails by throwing: UsageError for a wrong command line (exit status 2), ExitStatus if
// everything was said, any other std::exception for other failures (exit status 1). run_command
// prints the line.
#pragma once

#include <CLI/CLI.hpp>
#include <vector>

namespace convoy::app {

// Each adds a verb to the application: its flags and its callback. Declare new verbs here and list
// them in commands.cpp.
using AddVerb = void (*)(CLI::App& app);
void add_bench_command(CLI::App& app);
void add_data_command(CLI::App& app);
void add_train_command(CLI::App& app);
void add_evaluate_command(CLI::App& app);
void add_export_command(CLI::App& app);
void add_info_command(CLI::App& app);
void add_predict_command(CLI::App& app);
void add_partition_command(CLI::App& app);
void add_simulate_command(CLI::App& app);

// Parses the command line, runs the verb and returns the exit status of the process: 0, 1 for a
// failure, 2 for a wrong command line, or the status in an ExitStatus. Prints at most one line on
// standard error.
int run_command(int argc, char** argv);

// The same with other verbs, for tests.
int run_command(int argc, char** argv, const std::vector<AddVerb>& verbs);

}  // namespace convoy::app
