// Step 1 of ParDNN (Qararyah, Wahib, Dikbayır, Belviranli, Unat, "A Computational-Graph
// Partitioning Method for Training Memory-Constrained DNNs", arXiv 2008.08636): slicing, mapping
// and refinement. Step 2, which makes the result fit into memory, is in partition/memory. The time
// is near-linear in nodes and edges for a fixed number of devices.
#pragma once

#include "partition/placement/units.h"
#include "partition/simulation/simulator.h"

namespace convoy::partition {

// The result of slicing: disjoint paths of nodes, called clusters, that cover the graph.
struct Slices {
  // One path per device: the critical path of the nodes that are in no path before it.
  std::vector<std::vector<NodeIndex>> primary;
  std::vector<std::vector<NodeIndex>> secondary;  // paths of the remaining nodes, longest first
};
Slices slice(const CostModel& cost);

// Puts primary cluster k on device k. A secondary cluster goes to the device with the least load in
// the span of time in which the cluster can run. Communication with other devices counts as load,
// as far as slack cannot hide it. So the cluster joins the one with which it communicates if
// running in parallel gains less than the communication costs. Returns a placement without an
// order.
Placement map_clusters(const CostModel& cost, const Units& units, const Slices& slices);

// Shortens a placement along the critical path of its schedule: gives single nodes other devices,
// swaps paths between two devices, or moves the whole critical path. Keeps a change only if the
// simulated makespan falls. `placement` must have an order; the result is never longer.
Placement refine(const CostModel& cost, const Units& units, const Placement& placement);

// Slices, maps and refines. The placement has an order.
Placement place_by_pardnn(const CostModel& cost, const Units& units);

}  // namespace convoy::partition
