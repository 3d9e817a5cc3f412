// A genetic search for a short order of the clients.
#pragma once

#include "partition/sharing/policies.h"

namespace convoy::partition::sharing {

struct GeneticLimits {
  std::uint64_t seed = 1;
  std::chrono::duration<double> time = std::chrono::seconds(1);
  Nanoseconds bound = 0;  // the search ends when an order has this makespan
};

// Returns the order with the shortest makespan that a genetic search finds. The population starts
// with the orders `seeds` and with random orders. A parent is the shorter of two orders that are
// chosen at random from the population. A child takes the clients of its first parent up to a
// random point, and the others in the order of its second parent (order crossover: Davis, IJCAI
// 1985, with one point). A mutation swaps two clients or moves one. The child replaces an order of
// equal makespan, or else the longest one. A population that has not improved for long is replaced
// by a random one. The search ends after several populations without improvement. So the result
// depends on the speed of the machine only if the time limit ends the search.
Order search_genetically(const Workload& workload, const std::vector<Order>& seeds,
                         const GeneticLimits& limits);

}  // namespace convoy::partition::sharing
