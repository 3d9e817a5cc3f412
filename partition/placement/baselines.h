// Baseline placements, to which all others are compared. All functions return a placement that
// keeps pins and colocation groups and ignores memory limits. It has an order only if the algorithm
// makes one.
#pragma once

#include "partition/placement/units.h"
#include "partition/simulation/placement.h"

namespace convoy::partition {

// Puts all nodes that are not pinned on the fastest device.
Placement place_on_one_device(const CostModel& cost, const Units& units);

// Cuts a topological order into K stretches of equal work.
Placement place_contiguously(const CostModel& cost, const Units& units);

// Places by HEFT, heterogeneous earliest finish time (Topcuoglu, Hariri, Wu, IEEE TPDS 13(3),
// 2002): nodes in the order of their upward ranks, the longest paths from a node to the end. The
// first node of a colocation group chooses the device of the group. `transfer_weight` scales
// transfers in the upward ranks. With 1, and with insertion, this is the published algorithm.
Placement place_by_heft(const CostModel& cost, const Units& units, double transfer_weight = 1,
                        bool insertion = true);

// Places by ETF, earliest task first (Hwang, Chow, Anger, Lee, SIAM J. Comput. 18(2), 1989), in the
// form of Baechi's m-ETF (Jeon et al., SoCC 2020). A device whose resident bytes would exceed its
// limit is not used while another device has space.
Placement place_by_etf(const CostModel& cost, const Units& units);

// Places by a multilevel k-way partition of the undirected graph, made by the METIS library
// (Karypis, Kumar, SIAM J. Sci. Comput. 20(1), 1998). It balances work and minimises the transfer
// time of the edges between devices.
Placement place_by_metis(const CostModel& cost, const Units& units);

}  // namespace convoy::partition
