// How a run trains, for the configuration table: what is in force, not what the flags say.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "app/training/train_options.h"

namespace convoy::app {

// Name and value of the rows on optimizer, learning rate, loss, tests and checkpoints.
std::vector<std::pair<std::string, std::string>> training_rows(const TrainOptions& options,
                                                               std::int64_t steps_per_epoch);

}  // namespace convoy::app
