// Computes the memory of a simulated schedule over time with the rules of simulator.h.
#pragma once

#include "partition/simulation/simulator.h"

namespace convoy::partition {

// Computes use[].resident_bytes, use[].peak_bytes and `memory` of `result` from its `start`,
// `finish` and `transfers`.
void account_memory(const TaskGraph& graph, std::span<const DeviceIndex> device_of, Simulation& result);

}  // namespace convoy::partition
