// Writes a simulated schedule as Chrome trace JSON (the Trace Event Format of chrome://tracing and
// Perfetto).
#pragma once

#include <string>

#include "partition/simulation/simulator.h"

namespace convoy::partition {

// Writes for each device a thread for its nodes, threads for the transfers that it sends, and a
// counter for its memory. Times are in µs.
std::string chrome_trace(const TaskGraph& graph, const Simulation& simulation);

}  // namespace convoy::partition
