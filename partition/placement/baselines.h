// Baseline placements, to which all others are compared. All functions respect pins and colocation
// groups and ignore memory limits. A placement has an order only if its algorithm makes one.
#pragma once

#include <optional>

#include "partition/placement/units.h"
#include "partition/simulation/placement.h"

namespace convoy::partition {

// Puts all nodes on the device of the first pin, except those with other pins. Without pins, puts
// them on the fastest device.
Placement place_on_one_device(const CostModel& cost, const Units& units);
bool is_on_one_device(const Placement& placement);
// Returns the makespan of place_on_one_device(), or nothing if nodes are pinned to several devices.
std::optional<Nanoseconds> one_device_time(const CostModel& cost, const Units& units);

// Divides a topological order into K ranges of consecutive nodes, one per device. The work of a
// range is in proportion to the speed of its device.
Placement place_contiguously(const CostModel& cost, const Units& units);

// Places by HEFT, heterogeneous earliest finish time (Topcuoglu, Hariri, Wu, IEEE TPDS 13(3),
// 2002). Places the nodes in the order of their upward ranks, which are the longest paths from a
// node to the end. The first node of a colocation group chooses the device of the group.
// `transfer_weight` scales the transfers in the upward ranks. With `insertion`, a node may run in
// an idle gap between nodes that are already placed. The published algorithm has weight 1 and
// insertion.
Placement place_by_heft(const CostModel& cost, const Units& units, double transfer_weight = 1,
                        bool insertion = true);

// Places by ETF, earliest task first (Hwang, Chow, Anger, Lee, SIAM J. Comput. 18(2), 1989), in the
// variant m-ETF of Baechi (Jeon et al., SoCC 2020). A device is avoided if the node's resident
// bytes would exceed its memory limit, unless no other device has space.
Placement place_by_etf(const CostModel& cost, const Units& units);

// Places by a multilevel k-way partition of the undirected graph with the METIS library (Karypis,
// Kumar, SIAM J. Sci. Comput. 20(1), 1998). It balances work and minimises the transfer time of the
// edges between devices.
Placement place_by_metis(const CostModel& cost, const Units& units);

}  // namespace convoy::partition
