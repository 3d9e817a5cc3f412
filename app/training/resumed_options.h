// What must agree between a run and the one that it goes on from.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "app/training/train_options.h"

namespace convoy::app {

// Throws UsageError naming the first flag that decides what the weights become and that differs
// from those in `saved`, to_json's of the run that is resumed. Length, output, feeding and place
// may differ. A flag that `saved` does not know had its default.
void check_resumed_options(const TrainOptions& options, const nlohmann::json& saved);

// A schedule that depends on the run's length has another rate at `step` if the length has changed:
// one line that gives both rates, to be said as a warning. Empty if the rate goes on as it was.
std::string rate_jump(const TrainOptions& options, const nlohmann::json& saved, std::int64_t step,
                      std::int64_t steps_per_epoch);

}  // namespace convoy::app
