// Lends one batch to several users.
#pragma once

#include <vector>

#include "data/loader/batch.h"

namespace convoy::data {

// Returns `count` leases of one batch; `count` is at least 1. The batch is returned to its source
// when the last of them ends.
std::vector<BatchLease> shared_leases(BatchLease lease, int count);

}  // namespace convoy::data
