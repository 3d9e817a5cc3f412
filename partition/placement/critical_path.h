// The critical path of a schedule: a chain of nodes from time zero to the makespan.
#pragma once

#include <vector>

#include "partition/placement/schedule_state.h"

namespace convoy::partition {

// Writes the critical path to `path`, from its first node to its last. Each node starts as soon as
// the one before it on the path allows. If a transfer waited for other transfers, the path also
// contains both ends of each of them.
// `producers_first`: which one the path takes if both a producer and the previous node on the
// device delay a node.
void find_critical_path(const ScheduleState& state, std::vector<NodeIndex>& path,
                        bool producers_first = true);

}  // namespace convoy::partition
