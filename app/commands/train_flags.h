// Declares the flags of `convoy train`, including --config.
#pragma once

#include <CLI/CLI.hpp>

#include "app/training/train_options.h"

namespace convoy::app {

// Adds every option of option_table.h and --config to the verb. `options` must outlive the verb.
void add_train_flags(CLI::App& verb, TrainOptions& options);

}  // namespace convoy::app
