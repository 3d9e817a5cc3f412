// Tests a checkpoint or a model file on a data set and reports the result.
#pragma once

#include <string>

#include "app/training/evaluation.h"

namespace convoy::app {

struct EvaluateOptions {
  EvaluationOptions evaluation;
  std::string report;  // the folder for the confusion matrix; empty if there is none
};

struct EvaluationResult {
  std::string text, json;  // one line each; empty on ranks other than 0
};

// Throws UsageError unless there is either a checkpoint or a model file. Collective.
EvaluationResult evaluate(EvaluateOptions options, const comm::MpiEnvironment& environment);

// Checks that there is either a checkpoint or a model file. Throws UsageError.
void check_evaluated(const EvaluateOptions& options);

}  // namespace convoy::app
