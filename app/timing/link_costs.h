// Measures the cost of a message between two ranks. The partitioner needs it to decide which
// tensors go to another rank.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "comm/collectives.h"

namespace convoy::app {

struct LinkCost {
  double latency_ms = 0;
  // Bytes per millisecond of a large message. On GPUs both ends compute meanwhile, as in most of a
  // step.
  double bytes_per_ms = 1e9;
  // The fraction of a large message's time in which the receiver's processor copies: 0 (none) to 1
  // (all).
  double receiver_share = 0;
  bool in_turn = false;  // a message waits until the previous one has arrived
};

// Measures the links between the first `among` ranks. Every pair sends small and large messages in
// both directions, one pair at a time. Elements [a][b] and [b][a] of the result are the link
// between ranks a and b, the same on every rank; elements [a][a] cost nothing. Collective over all
// of `ranks`.
std::vector<std::vector<LinkCost>> measure_links(comm::Collectives& ranks, kernels::Backend backend,
                                                 int among);

// Returns the milliseconds that an all-reduce of eight numbers over the GPUs of `ranks` takes.
// Collective.
double measure_small_sum(comm::Collectives& ranks);

// Replaces values in host memory by their sums over the ranks. The sums are computed in memory of
// the backend. Collective.
void sum_values(comm::Collectives& ranks, kernels::Backend backend, std::span<double> values,
                std::string_view label);

}  // namespace convoy::app
