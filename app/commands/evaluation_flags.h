// Adds the flags that `evaluate` and `predict` have in common.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "app/training/evaluation.h"

namespace convoy::app {

// Adds --checkpoint, which is returned, and --ema. `options` must outlive the verb.
CLI::Option* add_checkpoint_flags(CLI::App& verb, EvaluationOptions& options);
// Adds --backend, --precision, --threads and --timeout. `options` must outlive the verb.
void add_execution_flags(CLI::App& verb, EvaluationOptions& options);

}  // namespace convoy::app
