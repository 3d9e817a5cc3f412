// A lower bound on the makespan that counts transfers.
#pragma once

#include "partition/simulation/machine.h"

namespace convoy::partition {

// Returns a lower bound on the makespan for any number of devices, or 0 if the graph is too large.
// A node waits for its producers' transfers, or its own device runs some of the producers first,
// whichever is shorter. The bound is the longest path under this rule, forwards or backwards.
// (Papadimitriou & Yannakakis, SIAM J. Comput. 19(2), 1990, with one level of producers.)
Nanoseconds communication_bound(const CostModel& cost);

}  // namespace convoy::partition
