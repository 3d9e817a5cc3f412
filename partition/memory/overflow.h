// Memory limits (ParDNN's step 2): finds a placement whose simulated memory stays within every
// device's limit, or says why there is none.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "partition/placement/units.h"
#include "partition/simulation/simulator.h"

namespace convoy::partition {

// Returns by how many bytes the simulation exceeds the limits, summed over the devices; 0 if it
// keeps to all of them.
Bytes memory_overflow(const Machine& machine, const Simulation& simulation);

// Returns a proof, in one line, that no placement can fit, or nothing. Tries in this order:
//   1. The resident bytes of all nodes exceed all devices together. If sizes have a common divisor,
//     devices count only up to a multiple of it.
//   2. The parameters of a node's colocation group, the node's inputs and its output exceed every
//     device, or the device of its pin.
//   3. The resident bytes of the nodes that are pinned to a device exceed it.
//   4. On K devices, no two of the K + 1 largest nodes or groups fit together.
std::optional<std::string> infeasibility_certificate(const CostModel& cost, const Units& units);

// Returns a limit below which nothing fits on equal devices. It is the larger of two sizes: the
// most that one node needs (its group's parameters, its inputs and its output), and the resident
// bytes of all nodes divided by the number of devices.
Bytes memory_floor(const CostModel& cost, const Units& units);

struct OverflowResult {
  // Placement with an order that keeps to all limits; empty if there is none.
  std::optional<Placement> placement;
  std::string reason;   // without a placement: the device that exceeds its limit, or the proof
  bool proven = false;  // whether `reason` is a proof
};

// kQuick runs the greedy algorithm and a short search. kThorough tries all placements of a small
// graph (at most 2^20 placements); for other graphs it searches until the time is up.
enum class Effort { kQuick, kThorough };

// Repairs a placement. On each device above its limit, takes the units (units.h) that hold memory
// at the device's peak and moves them to devices with room: first the units with the least added
// cost per byte (a greedy min-knapsack). Simulates and repeats this until all devices fit. If the
// excess no longer falls, runs a local search for less excess. Ignores the makespan, which the
// improvement reduces later. `time` counts this thread's processor time, so that a busy machine
// finds what an idle one finds. No step begins after `deadline`.
OverflowResult fit_memory(
    const CostModel& cost, const Units& units, const Placement& placement, Effort effort,
    std::chrono::nanoseconds time,
    std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max());

}  // namespace convoy::partition
