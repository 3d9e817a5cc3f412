// `convoy partition --pipeline`: cuts a graph into the stages of a pipeline and prints its
// throughput.
#pragma once

#include <cstdint>
#include <string>

#include "partition/simulation/machine.h"

namespace convoy::app {

// Prints stages and times, with --json as one JSON object. Throws std::runtime_error if no pipeline
// keeps to the memory limit.
void run_pipeline(const std::string& graph, const partition::CostModel& cost, bool replicate,
                  std::int64_t micro_batches, bool json);

}  // namespace convoy::app
