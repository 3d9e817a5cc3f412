// What a message between two ranks costs, measured before the partitioner decides where tensors cross.
#pragma once

#include <vector>

#include "comm/collectives.h"

namespace convoy::app {

struct LinkCost {
  double latency_ms = 0;
  double bytes_per_ms = 1e9;
  double receiver_part = 0;  // of a large message's time: what the receiver must itself do, from 0 to 1
};

// Collective over all of `ranks`: every pair sends small and large messages to and fro, pair after pair. Element
// [a][b] on every rank, the same both ways; the diagonal is free. Host memory.
std::vector<std::vector<LinkCost>> measure_links(comm::Collectives& ranks);

}  // namespace convoy::app
