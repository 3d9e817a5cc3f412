// Writes a simulated schedule as Chrome trace JSON (the Trace Event Format of chrome://tracing and
// Perfetto).
#pragma once

#include <string>

#include "partition/simulation/simulator.h"

namespace convoy::partition {

// Writes one thread per device for its nodes, threads for its sends, and a counter of its memory.
// Times are in µs.
std::string chrome_trace(const TaskGraph& graph, const Simulation& simulation);

}  // namespace convoy::partition
