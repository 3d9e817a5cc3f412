// Step 1 of ParDNN (Qararyah, Wahib, Dikbayır, Belviranli, Unat, "A Computational-Graph
// Partitioning Method for Training Memory-Constrained DNNs", arXiv 2008.08636): slicing, mapping
// and refinement. Step 2, which makes the result fit into memory, is in partition/memory. For a
// fixed number of devices, the run time is almost linear in the number of nodes and edges.
#pragma once

#include "partition/placement/units.h"
#include "partition/simulation/simulator.h"

namespace convoy::partition {

// The result of slicing: the graph as disjoint paths of nodes, called clusters.
struct Slices {
  // One path per device. Each is the critical path of the nodes that are in no earlier path.
  std::vector<std::vector<NodeIndex>> primary;
  std::vector<std::vector<NodeIndex>> secondary;  // paths of the remaining nodes, longest first
};
Slices slice(const CostModel& cost);

// Puts primary cluster k on device k. Then places the secondary clusters, those with most work
// first. Each goes to the device where the sum of two times is least: the work that the device has
// during the time in which the cluster can run, and the time by which the cluster's transfers
// exceed the slack of their edges. In the result, Placement::order is empty.
Placement map_clusters(const CostModel& cost, const Units& units, const Slices& slices);

// Shortens a placement along the critical path of its schedule. Gives single nodes other devices,
// swaps paths between two devices, or moves the whole critical path. Keeps a change only if the
// simulated makespan falls. `placement` must have an order. The result is never longer.
Placement refine(const CostModel& cost, const Units& units, const Placement& placement);

// Places a graph by slicing, mapping and refinement. The returned placement has an order.
Placement place_by_pardnn(const CostModel& cost, const Units& units);

}  // namespace convoy::partition
