// ParDNN (Qararyah, Wahib, Dikbayır, Belviranli, Unat, "A Computational-Graph Partitioning Method
// for Training Memory-Constrained DNNs", arXiv 2008.08636), step 1: slicing, mapping and
// refinement. Step 2, memory, is in partition/memory. Near-linear in nodes and edges for a fixed
// number of devices.
#pragma once

#include "partition/placement/units.h"
#include "partition/simulation/simulator.h"

namespace convoy::partition {

// Disjoint paths that cover the graph.
struct Slices {
  std::vector<std::vector<NodeIndex>> primary;    // K critical paths, each without the nodes of those before
  std::vector<std::vector<NodeIndex>> secondary;  // the remaining nodes, heaviest remaining path first
};
Slices slice(const CostModel& cost);

// Puts primary cluster k on device k. Each secondary cluster goes to the device that is least
// loaded in the cluster's span of time, counting the communication that its slack cannot hide. So a
// cluster whose communication outweighs its gain in parallelism joins the cluster with which it
// communicates. Returns a placement without an order.
Placement map_clusters(const CostModel& cost, const Units& units, const Slices& slices);

// Switches nodes, swaps paths and switches critical paths along the critical path of the schedule.
// A change is kept only if the simulated makespan falls. `placement` must have an order; the result
// is never longer.
Placement refine(const CostModel& cost, const Units& units, const Placement& placement);

// Runs all three. The placement has an order.
Placement place_by_pardnn(const CostModel& cost, const Units& units);

}  // namespace convoy::partition
