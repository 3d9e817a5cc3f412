// The placements that every other one is measured against, all with one interface: a placement that keeps
// pins and colocation groups and ignores memory limits. An order is given only where the algorithm makes one.
#pragma once

#include "partition/placement/units.h"
#include "partition/simulation/placement.h"

namespace convoy::partition {

// Everything that is not pinned on the fastest device.
Placement place_on_one_device(const CostModel& cost, const Units& units);

// A topological order cut into K stretches of equal work.
Placement place_contiguously(const CostModel& cost, const Units& units);

// Heterogeneous earliest finish time with insertion (Topcuoglu, Hariri, Wu, IEEE TPDS 13(3), 2002). The first
// node of a colocation group chooses for all of it.
// `transfer_weight` scales the transfers in the upward ranks; 1, with insertion, is the published
// algorithm.
Placement place_by_heft(const CostModel& cost, const Units& units, double transfer_weight = 1,
                        bool insertion = true);

// Earliest task first (Hwang, Chow, Anger, Lee, SIAM J. Comput. 18(2), 1989) in the form of Baechi's m-ETF
// (Jeon et al., SoCC 2020): a device whose resident bytes would exceed its limit is passed over while another
// has room.
Placement place_by_etf(const CostModel& cost, const Units& units);

// Multilevel k-way partition of the undirected graph by the METIS library (Karypis, Kumar, SIAM J. Sci.
// Comput. 20(1), 1998): balanced work, least cut transfer time.
Placement place_by_metis(const CostModel& cost, const Units& units);

}  // namespace convoy::partition
