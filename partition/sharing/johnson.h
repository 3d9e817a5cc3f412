// Johnson's rule for two machines that every job visits in the same order.
#pragma once

#include <utility>
#include <vector>

#include "partition/sharing/clients.h"

namespace convoy::partition::sharing {

// Positions of `times` (on the first machine, on the second) such that the last job ends as early
// as possible: first those that are shorter on the first machine, by rising first time, then the
// others by falling second time; ties by position. S. M. Johnson, "Optimal two- and three-stage
// production schedules with setup times included", Nav. Res. Logist. Q. 1(1), 1954.
std::vector<ClientIndex> johnson_order(const std::vector<std::pair<Nanoseconds, Nanoseconds>>& times);

}  // namespace convoy::partition::sharing
