// Lends one batch to several users.
#pragma once

#include <vector>

#include "data/loader/batch.h"

namespace convoy::data {

// Returns `count` leases of one batch, at least one. The batch is given back when all of them have
// ended.
std::vector<BatchLease> shared_leases(BatchLease lease, int count);

}  // namespace convoy::data
