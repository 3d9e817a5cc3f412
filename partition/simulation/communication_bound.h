// A lower bound on the makespan that counts transfers.
#pragma once

#include "partition/simulation/machine.h"

namespace convoy::partition {

// Returns a lower bound on the makespan for any number of devices, or 0 if the graph is too large.
// It is the longest path in which a node with several producers waits for their transfers, or for
// its own device to run some of them, whichever is less. The same holds from the end backwards.
// (Papadimitriou & Yannakakis, SIAM J. Comput. 19(2), 1990, with one level of producers.)
Nanoseconds communication_bound(const CostModel& cost);

}  // namespace convoy::partition
