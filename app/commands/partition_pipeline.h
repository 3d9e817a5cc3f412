// `convoy partition --pipeline`: the throughput of a graph as a pipeline of stages.
#pragma once

#include <cstdint>
#include <string>

#include "partition/simulation/machine.h"

namespace convoy::app {

// Prints stages and times, as one JSON object with --json. Throws std::runtime_error if no pipeline
// keeps to the memory limit.
void run_pipeline(const std::string& graph, const partition::CostModel& cost, bool replicate,
                  std::int64_t micro_batches, bool json);

}  // namespace convoy::app
