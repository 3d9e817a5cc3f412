// Adds the flags of the verb `evaluate`. The verb `predict` has some of them, too.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "app/training/evaluate.h"

namespace convoy::app {

// Adds --checkpoint and --ema, and returns the option --checkpoint. `options` must outlive the
// verb.
CLI::Option* add_checkpoint_flags(CLI::App& verb, EvaluationOptions& options);
// Adds --model, --size and --test-resize, which exclude --checkpoint, and returns the option
// --model. `options` must outlive the verb.
CLI::Option* add_model_flags(CLI::App& verb, EvaluationOptions& options);
// Adds --backend, --precision, --threads and --timeout. `options` must outlive the verb.
void add_execution_flags(CLI::App& verb, EvaluationOptions& options);

// Adds the flags of `convoy evaluate` except --json. `options` must outlive the verb.
void add_evaluate_flags(CLI::App& verb, EvaluateOptions& options);

}  // namespace convoy::app
