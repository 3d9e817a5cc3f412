// `--config FILE`: reads a verb's flags from a file, in TOML without tables.
//
//   # a comment
//   model = "resnet18"            # keys are the long flags without their dashes
//   global-batch = 256
//   learning-rate = 0.1
//   milestones = [30, 60, 80]     # lists are arrays or texts with commas
//   nesterov = true               # flags without a value take true or false
//
// The command line wins over the file. Unknown and repeated keys, [tables] and values of the wrong
// type are errors that name the file and the key.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

namespace convoy::app {

// Groups of flags that exclude each other. A flag of a group on the command line also overrides the
// other flags of the group in the file.
using ExclusiveFlags = std::vector<std::vector<std::string>>;

// Adds --config to a verb. Call this after the verb's other flags are added. CLI11 handles options
// in the order in which they were added, and --config must come last: it sets only the flags that
// the command line has not set. A mistake in the file throws CLI::ConfigError.
void add_config_option(CLI::App& verb, ExclusiveFlags exclusive = {});

// Gives values to the flag that `key` names, with the checks of the flag. `source` is the file or
// the flag that the values come from. Throws CLI::ConfigError, which names `source` and `key`.
void apply_values(CLI::App& verb, const std::string& key, const std::vector<std::string>& values,
                  const std::string& source);

// One [[name]] table of a TOML file: keys with their values, as the command line would spell them.
// read_rows() returns all [[name]] tables of the file.
using ConfigRow = std::vector<std::pair<std::string, std::vector<std::string>>>;
std::vector<ConfigRow> read_rows(const std::string& file, const std::string& name);

}  // namespace convoy::app
