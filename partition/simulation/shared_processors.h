// Devices that share processors: ranks that outnumber the cores of their host. While more of them run than there are
// processors, each runs at its share of them.
#pragma once

#include <vector>

#include "partition/simulation/placement.h"

namespace convoy::partition {

struct SharedProcessors {
  std::vector<int> group_of;       // of every device
  std::vector<double> processors;  // of every group; more than the group's devices can use: nothing is shared
};

// The makespan of a placement with an order, times of nodes being those of a device that has its processors for itself.
// Transfers have their links for themselves. Throws std::runtime_error for an order that deadlocks.
Nanoseconds simulate_shared(const CostModel& cost, const Placement& placement,
                            const SharedProcessors& shared);

}  // namespace convoy::partition
