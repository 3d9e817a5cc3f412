// Finds the shortest order of a few clients.
#pragma once

#include "partition/sharing/policies.h"

namespace convoy::partition::sharing {

inline constexpr ClientIndex kMostExactClients = 9;

struct ExactOrder {
  Order order;
  // Whether no order is shorter. Either all orders were searched, or this one reaches the lower
  // bound.
  bool complete = false;
};

// Searches by branch and bound with the simulator's rules. Whenever the copy engine is free, it
// tries every client as the next one. Starts with the shortest of the orders `seeds`. Throws
// std::runtime_error for more than kMostExactClients clients.
ExactOrder search_exactly(const Workload& workload, const std::vector<Order>& seeds,
                          std::chrono::duration<double> time);

}  // namespace convoy::partition::sharing
