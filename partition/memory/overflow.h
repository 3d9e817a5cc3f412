// Repairs placements that exceed memory limits (step 2 of ParDNN). Finds a placement whose
// simulated memory stays within the limit of every device, or gives the reason why none was found.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "partition/placement/units.h"
#include "partition/simulation/simulator.h"

namespace convoy::partition {

// Returns the excess of the simulation's memory over the limits in bytes, summed over all devices.
// It is 0 if the placement fits.
Bytes memory_overflow(const Machine& machine, const Simulation& simulation);

// Returns a one-line proof that no placement can fit, or nothing. Tries these proofs in order:
//   1. The resident bytes of all nodes exceed all devices together. If the sizes have a common
//     divisor, device limits are rounded down to a multiple of it.
//   2. A node needs more than every device has, or than the device of its pin has. It needs the
//     parameters of its colocation group, its inputs and its output.
//   3. The resident bytes of the nodes that are pinned to one device exceed this device.
//   4. On K devices, no two of the K + 1 largest nodes or groups fit together on one device.
std::optional<std::string> infeasibility_certificate(const CostModel& cost, const Units& units);

// Returns a memory size such that nothing fits on equal devices with less memory. It is the larger
// of two sizes: the most that a single node needs (its group's parameters, its inputs and its
// output), and the resident bytes of all nodes divided by the number of devices.
Bytes memory_floor(const CostModel& cost, const Units& units);

struct OverflowResult {
  // A placement and an order of its nodes within all memory limits; empty if none was found.
  std::optional<Placement> placement;
  std::string reason;   // without a placement: which device exceeds its limit, or the proof
  bool proven = false;  // whether `reason` is a proof
};

// kQuick runs the greedy algorithm and a short search. kThorough tries all placements of a small
// graph (at most 2^20 placements). For other graphs it searches until the time is up.
enum class Effort { kQuick, kThorough };

// Repairs a placement. Finds the units (units.h) that hold memory when a device above its limit is
// at its peak, and moves them to devices with room, those with the least added cost per byte first
// (a greedy min-knapsack). Simulates and repeats this until all devices fit. If the excess no
// longer falls, continues with a local search. Ignores the makespan, which is improved later.
// `time` limits the processor time of this thread, so that results do not depend on the load of the
// machine. No step begins after `deadline`.
OverflowResult fit_memory(
    const CostModel& cost, const Units& units, const Placement& placement, Effort effort,
    std::chrono::nanoseconds time,
    std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max());

}  // namespace convoy::partition
