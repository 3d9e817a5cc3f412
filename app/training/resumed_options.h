// The options that must agree between a run and the one that it goes on from.
#pragma once

#include <cstdint>
#include <string>

#include "app/training/train_options.h"

namespace convoy::app {

// `saved`: the options of the run that is resumed. Throws UsageError naming the first option that
// affects the weights and differs. Length, output, feeding and place may differ.
void check_resumed_options(const TrainOptions& options, const TrainOptions& saved);

// Returns a warning of one line, with both rates, if the rate at `step` jumps because the length of
// the run has changed; else an empty text. `saved` must have passed check_resumed_options.
std::string rate_jump(const TrainOptions& options, const TrainOptions& saved, std::int64_t step,
                      std::int64_t steps_per_epoch);

}  // namespace convoy::app
