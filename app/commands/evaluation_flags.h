// Adds the flags of `evaluate`, and those that it has in common with `predict`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "app/training/evaluate.h"

namespace convoy::app {

// Adds --checkpoint, which is returned, and --ema. `options` must outlive the verb.
CLI::Option* add_checkpoint_flags(CLI::App& verb, EvaluationOptions& options);
// Adds --model, --size and --test-resize, which exclude --checkpoint. `options` must outlive the
// verb.
CLI::Option* add_model_flags(CLI::App& verb, EvaluationOptions& options);
// Adds --backend, --precision, --threads and --timeout. `options` must outlive the verb.
void add_execution_flags(CLI::App& verb, EvaluationOptions& options);

// Adds the flags of `convoy evaluate` except --json. `options` must outlive the verb.
void add_evaluate_flags(CLI::App& verb, EvaluateOptions& options);

}  // namespace convoy::app
