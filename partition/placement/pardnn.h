// ParDNN (Qararyah, Wahib, Dikbayır, Belviranli, Unat, "A Computational-Graph Partitioning Method for
// Training Memory-Constrained DNNs", arXiv 2008.08636), step 1: slicing, mapping and refinement. Step 2,
// memory, is in partition/memory. Near-linear in nodes and edges for a fixed number of devices.
#pragma once

#include "partition/placement/units.h"
#include "partition/simulation/simulator.h"

namespace convoy::partition {

// Disjoint paths that cover the graph.
struct Slices {
  std::vector<std::vector<NodeIndex>> primary;    // K critical paths, each of what the ones before left
  std::vector<std::vector<NodeIndex>> secondary;  // the rest, heaviest remaining path first
};
Slices slice(const CostModel& cost);

// Primary cluster k is on device k; each secondary cluster goes where its span of time is least loaded,
// counting the communication that its slack cannot hide. A cluster whose communication outweighs what it
// would gain in parallel so joins the cluster that it talks to. Returns a placement without order.
Placement map_clusters(const CostModel& cost, const Units& units, const Slices& slices);

// Node switching, path swapping and critical-path switching along the critical path of the schedule, each
// kept only when the re-simulated makespan falls. Takes a placement with an order; never longer.
Placement refine(const CostModel& cost, const Units& units, const Placement& placement);

// All three; with an order.
Placement place_by_pardnn(const CostModel& cost, const Units& units);

}  // namespace convoy::partition
