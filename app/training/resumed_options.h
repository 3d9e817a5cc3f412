// Compares the options of a run with those of the run that it resumes.
#pragma once

#include <cstdint>
#include <string>

#include "app/training/train_options.h"

namespace convoy::app {

// Throws UsageError that names the first option that influences the weights and differs from
// `saved`, the options of the resumed run. Length, output, data feed, hosts and devices may differ.
void check_resumed_options(const TrainOptions& options, const TrainOptions& saved);

// Returns a warning of one line, with both rates, if the rate at `step` jumps because the length of
// the run has changed; else an empty text. `saved` must have passed check_resumed_options.
std::string rate_jump(const TrainOptions& options, const TrainOptions& saved, std::int64_t step,
                      std::int64_t steps_per_epoch);

}  // namespace convoy::app
