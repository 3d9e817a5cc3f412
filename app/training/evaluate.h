// Tests a checkpoint or a model file on a data set and reports the result.
#pragma once

#include <string>

#include "app/training/evaluation.h"

namespace convoy::app {

struct EvaluateOptions {
  EvaluationOptions evaluation;
  std::string report;  // the folder for the confusion matrix; empty: no matrix
};

struct EvaluationResult {
  std::string text, json;  // one line each; empty on all ranks but rank 0
};

// Tests the network on the data set and returns the result. Throws UsageError unless the options
// name either a checkpoint or a model file. Collective.
EvaluationResult evaluate(EvaluateOptions options, const comm::MpiEnvironment& environment);

// Throws UsageError unless the options name either a checkpoint or a model file.
void check_evaluated(const EvaluateOptions& options);

}  // namespace convoy::app
