// The verbs of the `convoy` command. The file of a verb adds its flags to the given CLI11
// application and sets the callback that runs the verb.
//
// A callback fails by throwing an exception, and run_command() prints its message:
//   - UsageError: the command line is wrong (exit status 2)
//   - ExitStatus: all messages were printed already
//   - any other std::exception: another failure (exit status 1)
#pragma once

#include <CLI/CLI.hpp>
#include <vector>

namespace convoy::app {

// Each function adds a verb to the application, with its flags and its callback. A new verb is
// declared here and listed in commands.cpp.
using AddVerb = void (*)(CLI::App& app);
void add_bench_command(CLI::App& app);
void add_data_command(CLI::App& app);
void add_train_command(CLI::App& app);
void add_evaluate_command(CLI::App& app);
void add_export_command(CLI::App& app);
void add_info_command(CLI::App& app);
void add_predict_command(CLI::App& app);
void add_partition_command(CLI::App& app);
void add_share_command(CLI::App& app);
void add_simulate_command(CLI::App& app);

// Parses the command line, runs the verb and returns the exit status of the process: 0 for success,
// 1 for a failure, 2 for a wrong command line, or the status in an ExitStatus. Prints at most one
// line on standard error.
int run_command(int argc, char** argv);

// Does the same, but knows only the given verbs. Tests use it with verbs of their own.
int run_command(int argc, char** argv, const std::vector<AddVerb>& verbs);

}  // namespace convoy::app
