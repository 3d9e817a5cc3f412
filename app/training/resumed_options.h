// The options that must agree between a run and the one that it goes on from.
#pragma once

#include <cstdint>
#include <string>

#include "app/training/train_options.h"

namespace convoy::app {

// `saved`: the options of the run that is resumed. Throws UsageError naming the first option that decides what the
// weights become and that differs. Length, output, feeding and place may differ.
void check_resumed_options(const TrainOptions& options, const TrainOptions& saved);

// Returns a warning of one line if the schedule depends on the run's length and the length has changed, so that the
// rate at `step` jumps; it gives both rates. Returns an empty text if the rate goes on as it was. `saved` must have
// passed check_resumed_options.
std::string rate_jump(const TrainOptions& options, const TrainOptions& saved, std::int64_t step,
                      std::int64_t steps_per_epoch);

}  // namespace convoy::app
