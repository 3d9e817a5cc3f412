// A simulated schedule as Chrome trace JSON (the Trace Event Format of chrome://tracing and
// Perfetto).
#pragma once

#include <string>

#include "partition/simulation/simulator.h"

namespace convoy::partition {

// One thread a device for nodes, one for what it sends, and a counter of its memory. Times in µs.
std::string chrome_trace(const TaskGraph& graph, const Simulation& simulation);

}  // namespace convoy::partition
