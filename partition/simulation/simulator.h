// Event-driven simulation of a placed task graph: the only judge of a placement. It knows nothing of how
// placements are made.
//
// A device runs one node at a time, without interruption. A tensor that a consumer on another device needs is
// sent once to that device as soon as its producer ends (the largest of the edges to that device),
// overlapping computation. A device that is free starts the next node of its order once its inputs are there;
// without an order it starts the ready node of the highest priority and never waits while one is ready.
//
// Memory: resident bytes from begin to end; a node's output from its start until its end, its last local
// consumer's end and its last send's arrival; a copy on a consumer's device from the send's start to its last
// consumer's end.
#pragma once

#include <span>
#include <vector>

#include "partition/simulation/placement.h"

namespace convoy::partition {

struct Transfer {
  NodeIndex producer = kNone;
  DeviceIndex from = 0, to = 0;
  Nanoseconds start = 0, arrival = 0;
  Bytes bytes = 0;
};

struct MemorySample {
  Nanoseconds time = 0;
  Bytes bytes = 0;  // from this time on
};

struct DeviceUse {
  Nanoseconds busy = 0;
  Nanoseconds idle = 0;              // before the makespan
  Nanoseconds exposed_transfer = 0;  // of it, waiting for a tensor whose producer had already ended
  Bytes resident_bytes = 0, peak_bytes = 0;
  std::int32_t nodes = 0;
};

struct Simulation {
  Nanoseconds makespan = 0;
  std::vector<Nanoseconds> start, finish;         // by node
  std::vector<std::vector<NodeIndex>> order;      // by device, as run
  std::vector<Transfer> transfers;                // by start
  std::vector<DeviceUse> use;                     // by device
  std::vector<std::vector<MemorySample>> memory;  // by device, ascending time
  Bytes cut_bytes = 0;                            // of all transfers
};

enum class Detail { kTimes, kAll };  // kTimes: makespan, start, finish and order only

// Longest path from each node's start to the end of the graph. The first uses node times alone; the second
// adds the transfers that a placement implies.
std::vector<Nanoseconds> bottom_levels(const CostModel& cost);
std::vector<Nanoseconds> bottom_levels(const CostModel& cost, std::span<const DeviceIndex> device_of);

// Follows the placement's order when it has one, else lists by bottom level with the placement's transfers.
// Throws std::runtime_error for an order that deadlocks, naming a node that never starts.
Simulation simulate(const CostModel& cost, const Placement& placement, Detail detail = Detail::kAll);

// List scheduling with the given priorities, one a node, larger first.
Simulation simulate_list(const CostModel& cost, std::span<const DeviceIndex> device_of,
                         std::span<const Nanoseconds> priority, Detail detail = Detail::kTimes);

}  // namespace convoy::partition
