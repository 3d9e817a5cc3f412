// Simulates a placed task graph, event by event. It is the only judge of a placement and knows
// nothing about how placements are made.
//
// A device runs one node at a time, without interruption. A tensor that consumers on another device
// need is sent to that device once, as soon as its producer ends, while both devices compute. Its
// size is the largest of the edges to that device. A free device starts the next node of its order
// once the inputs have arrived. Without an order it starts the ready node of the highest priority,
// and never waits while a node is ready.
//
// Memory: resident bytes are held all the time. A node's output is held from the node's start
// until its end, its last local consumer's end and its last send's arrival. A copy on a consumer's
// device is held from the send's start to its last consumer's end.
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
  Bytes bytes = 0;  // bytes held from this time on
};

struct DeviceUse {
  Nanoseconds busy = 0;
  Nanoseconds idle = 0;              // idle time until the makespan
  Nanoseconds exposed_transfer = 0;  // idle time spent waiting for a tensor whose producer had ended
  Bytes resident_bytes = 0, peak_bytes = 0;
  std::int32_t nodes = 0;
};

struct Simulation {
  Nanoseconds makespan = 0;
  std::vector<Nanoseconds> start, finish;         // times of each node
  std::vector<std::vector<NodeIndex>> order;      // nodes of each device in the order in which they ran
  std::vector<Transfer> transfers;                // transfers sorted by start
  std::vector<DeviceUse> use;                     // use of each device
  std::vector<std::vector<MemorySample>> memory;  // samples of each device by ascending time
  Bytes cut_bytes = 0;                            // sum of the bytes of all transfers
};

enum class Detail { kTimes, kAll };  // kTimes: makespan, start, finish and order only

// Returns the bottom level of each node: the longest path from its start to the end of the graph.
// The first function counts only node times; the second also the transfers of a placement.
std::vector<Nanoseconds> bottom_levels(const CostModel& cost);
std::vector<Nanoseconds> bottom_levels(const CostModel& cost, std::span<const DeviceIndex> device_of);

// Follows the placement's order if it has one. Otherwise list scheduling orders nodes by bottom
// level with the placement's transfers. If an order deadlocks, throws std::runtime_error that names
// a node that never starts.
Simulation simulate(const CostModel& cost, const Placement& placement, Detail detail = Detail::kAll);

// Simulates list scheduling with the given priorities (by node, larger first).
Simulation simulate_list(const CostModel& cost, std::span<const DeviceIndex> device_of,
                         std::span<const Nanoseconds> priority, Detail detail = Detail::kTimes);

}  // namespace convoy::partition
