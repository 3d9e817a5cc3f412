// Simulates a placed task graph event by event. All placements are judged by this simulation, which
// does not depend on the algorithm that made them.
//
// A device runs one node at a time without interruption. If consumers on another device need a
// tensor, it is sent to that device once, as soon as its producer ends, while both devices compute.
// The size of the transfer is the largest size of the edges to that device. A free device starts
// the next node of its order once the inputs have arrived. Without an order, it starts the ready
// node with the highest priority, and never waits while a node is ready.
//
// Resident bytes are in memory all the time. A node's output is in memory from the node's start
// until three events have happened: the node's end, the end of its last consumer on the same
// device, and the arrival of its last transfer. A copy on the device of a consumer is in memory
// from the start of the transfer to the end of the last consumer there.
#pragma once

#include <span>
#include <vector>

#include "partition/simulation/placement.h"

namespace convoy::partition {

struct SimulatedTransfer {
  NodeIndex producer = kNone;
  DeviceIndex from = 0, to = 0;
  Nanoseconds start = 0, arrival = 0;
  Bytes bytes = 0;
};

struct MemorySample {
  Nanoseconds time = 0;
  Bytes bytes = 0;  // bytes in memory from this time on
};

struct DeviceUtilisation {
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
  std::vector<SimulatedTransfer> transfers;       // transfers sorted by start
  std::vector<DeviceUtilisation> use;             // use of each device
  std::vector<std::vector<MemorySample>> memory;  // samples of each device by ascending time
  Bytes cut_bytes = 0;                            // sum of the bytes of all transfers
};

enum class Detail { kTimes, kAll };  // kTimes computes only makespan, start, finish and order

// Both return the bottom level of each node, which is the longest path from its start to the end of
// the graph. The first one counts only node times; the second one also counts the transfers of a
// placement.
std::vector<Nanoseconds> bottom_levels(const CostModel& cost);
std::vector<Nanoseconds> bottom_levels(const CostModel& cost, std::span<const DeviceIndex> device_of);

// Runs the nodes in the placement's order. Without one, runs them by list scheduling, with bottom
// levels that include the placement's transfers. If an order deadlocks, throws a std::runtime_error
// that names a node that never starts.
Simulation simulate(const CostModel& cost, const Placement& placement, Detail detail = Detail::kAll);

// Simulates list scheduling with the given priority of each node. Larger values come first.
Simulation simulate_list(const CostModel& cost, std::span<const DeviceIndex> device_of,
                         std::span<const Nanoseconds> priority, Detail detail = Detail::kTimes);

}  // namespace convoy::partition
