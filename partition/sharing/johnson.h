// Johnson's rule for two machines that every job visits in the same order.
#pragma once

#include <utility>
#include <vector>

#include "partition/sharing/clients.h"

namespace convoy::partition::sharing {

// Returns the order of jobs with the least makespan. `times`: by job, its time on the first machine
// and on the second. Jobs that are shorter on the first machine come first, by rising first time;
// the others follow by falling second time. Ties go by position. (S. M. Johnson, "Optimal two- and
// three-stage production schedules with setup times included", Nav. Res. Logist. Q. 1(1), 1954.)
std::vector<ClientIndex> johnson_order(const std::vector<std::pair<Nanoseconds, Nanoseconds>>& times);

}  // namespace convoy::partition::sharing
