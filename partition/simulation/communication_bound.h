// A lower bound on the makespan that takes transfers into account.
#pragma once

#include "partition/simulation/machine.h"

namespace convoy::partition {

// Returns a lower bound on the makespan for any number of devices, or 0 if the graph is too large.
// A node either waits for the transfers from its producers, or its own device runs some of the
// producers before. The bound is the longest path, forwards or backwards, if each node takes the
// shorter alternative. (Papadimitriou & Yannakakis, SIAM J. Comput. 19(2), 1990, with one level of
// producers.)
Nanoseconds communication_bound(const CostModel& cost);

}  // namespace convoy::partition
