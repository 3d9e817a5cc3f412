// The cost of a message between two ranks, measured before the partitioner decides where tensors
// cross.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "comm/collectives.h"

namespace convoy::app {

struct LinkCost {
  double latency_ms = 0;
  double bytes_per_ms = 1e9;  // on devices: while both compute, as in most of a step
  double receiver_share = 0;  // from 0 to 1: share of a large message that the receiver copies itself
  bool in_turn = false;       // whether a message waits until the one before it has arrived
};

// Measures the links between the first `among` ranks: every pair sends small and large messages in
// both directions, one pair at a time, from transfer memory. Collective over all of `ranks`.
// Returns element [a][b] = [b][a] on every rank; the diagonal is free.
std::vector<std::vector<LinkCost>> measure_links(comm::Collectives& ranks, kernels::Backend backend,
                                                 int among);

// Returns the milliseconds of a sum of a few numbers over all GPUs of `ranks`. Collective.
double measure_small_sum(comm::Collectives& ranks);

// Replaces values in host memory by their sums over the ranks, through memory of the backend.
// Collective.
void sum_values(comm::Collectives& ranks, kernels::Backend backend, std::span<double> values,
                std::string_view label);

}  // namespace convoy::app
