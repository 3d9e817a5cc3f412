// Finds the best order of a few clients.
#pragma once

#include "partition/sharing/policies.h"

namespace convoy::partition::sharing {

inline constexpr ClientIndex kMostExactClients = 9;

struct ExactOrder {
  Order order;
  // Whether no order is shorter: all were searched, or the bound was reached.
  bool complete = false;
};

// Searches by branch and bound: each time that the copy engine is free it tries every client as the
// next one, by the simulator's own rules. Starts with the shortest of the orders `seeds`. Throws
// std::runtime_error for more than kMostExactClients.
ExactOrder search_exactly(const Workload& workload, const std::vector<Order>& seeds,
                          std::chrono::duration<double> time);

}  // namespace convoy::partition::sharing
