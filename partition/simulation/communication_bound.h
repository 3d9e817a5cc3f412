// A bound on makespans that knows what transfers cost.
#pragma once

#include "partition/simulation/machine.h"

namespace convoy::partition {

// The longest path on which a node with several producers waits for their transfers or for the
// device that runs them one after the other, whichever is less: of its producers, ordered by when
// their tensors would arrive from elsewhere, either the first j run on the node's own device, or
// one of those sends. The same from the end backwards. No schedule is shorter, on any number of
// devices (the idea is that of the earliest start times of Papadimitriou & Yannakakis, SIAM J.
// Comput. 19(2),
// 1990, with one level of producers looked at). 0 for graphs so large that it would take long.
Nanoseconds communication_bound(const CostModel& cost);

}  // namespace convoy::partition
