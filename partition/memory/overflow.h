// Memory limits: ParDNN's step 2. Finds a placement whose simulated memory stays within every
// device's limit, or says what makes that impossible.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "partition/placement/units.h"
#include "partition/simulation/simulator.h"

namespace convoy::partition {

// Tells whether the simulation keeps to every limit, and by how many bytes it exceeds them, summed
// over devices.
Bytes memory_overflow(const Machine& machine, const Simulation& simulation);

// A proof, in one line, that no placement can fit: a node whose own parameters, inputs and output
// exceed every device; a colocation group, pinned nodes or all nodes together whose resident bytes
// do (with a common divisor also by what it leaves of each device); units too large to share
// devices.
std::optional<std::string> infeasibility_certificate(const CostModel& cost, const Units& units);

// With less than this on each of equal devices nothing fits: the largest need of a node, or the
// resident bytes divided evenly.
Bytes memory_floor(const CostModel& cost, const Units& units);

struct OverflowResult {
  std::optional<Placement> placement;  // within all limits, with an order
  std::string reason;                  // otherwise: what still exceeds what
  bool proven = false;                 // whether `reason` is a proof
};

// How hard to try. kQuick: the greedy and a short search; kThorough: a search until the time is up,
// then all placements of a small graph (devices^units up to 2^20).
enum class Effort { kQuick, kThorough };

// Min-knapsack greedy: where a device exceeds its limit, the units live at its peak are moved to
// devices with room, least added cost per byte freed first, until the excess is covered;
// re-simulated and repeated. When that stalls, a local search on the excess follows, for `time` of
// this thread's processor time, so that a busy machine finds what an idle one does; no step begins
// after `deadline`. The makespan is secondary here; the improvement comes after.
OverflowResult fit_memory(
    const CostModel& cost, const Units& units, const Placement& placement, Effort effort,
    std::chrono::nanoseconds time,
    std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max());

}  // namespace convoy::partition
