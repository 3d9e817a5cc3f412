// Johnson's rule for jobs that visit two machines in the same order.
#pragma once

#include <utility>
#include <vector>

#include "partition/sharing/clients.h"

namespace convoy::partition::sharing {

// Returns the order of jobs with the least makespan. `times` holds the time of each job on the
// first and on the second machine. Jobs that are shorter on the first machine come first, in the
// order of rising time on it. The others follow in the order of falling time on the second machine.
// Equal jobs stay in order. (S. M. Johnson, "Optimal two- and three-stage production schedules with
// setup times included", Nav. Res. Logist. Q. 1(1), 1954.)
std::vector<ClientIndex> johnson_order(const std::vector<std::pair<Nanoseconds, Nanoseconds>>& times);

}  // namespace convoy::partition::sharing
