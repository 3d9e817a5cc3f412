// Compares the options of a run with those of the run that it resumes.
#pragma once

#include <cstdint>
#include <string>

#include "app/training/train_options.h"

namespace convoy::app {

// Throws UsageError if an option that influences the weights differs from `saved`, the options of
// the run to resume. The message names the first such option. The length of the run, its output,
// data feed, hosts and devices may differ.
void check_resumed_options(const TrainOptions& options, const TrainOptions& saved);

// Returns a warning of one line, with both learning rates, if the rate jumps at `step` because the
// resumed run has another length and so another schedule. Returns an empty text if there is no
// jump. `saved` must have passed check_resumed_options().
std::string rate_jump(const TrainOptions& options, const TrainOptions& saved, std::int64_t step,
                      std::int64_t steps_per_epoch);

}  // namespace convoy::app
