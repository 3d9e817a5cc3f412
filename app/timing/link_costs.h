// What a message between two ranks costs, measured before the partitioner decides where tensors cross.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "comm/collectives.h"

namespace convoy::app {

struct LinkCost {
  double latency_ms = 0;
  double bytes_per_ms = 1e9;  // on devices while both work, as they mostly do in a step
  double receiver_share = 0;  // of a large message's time: what the receiver must itself do, from 0 to 1
  bool in_turn = false;       // whether one message waits for the one before it
};

// Collective over all of `ranks`: every pair of the first `among` of them sends small and large messages to and fro, pair after
// pair, between what these ranks have for transfers. Element [a][b] on every rank, the same both ways; the diagonal is free.
std::vector<std::vector<LinkCost>> measure_links(comm::Collectives& ranks, kernels::Backend backend,
                                                 int among);

// Milliseconds of a sum of a few numbers over all GPUs of `ranks`. Collective.
double measure_small_sum(comm::Collectives& ranks);

// The sum over the ranks of values in host memory, through memory of the backend. Collective.
void sum_values(comm::Collectives& ranks, kernels::Backend backend, std::span<double> values,
                std::string_view label);

}  // namespace convoy::app
