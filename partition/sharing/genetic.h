// A genetic search for a short order of the clients.
#pragma once

#include "partition/sharing/policies.h"

namespace convoy::partition::sharing {

struct GeneticLimits {
  std::uint64_t seed = 1;
  std::chrono::duration<double> time = std::chrono::seconds(1);
  Nanoseconds bound = 0;  // an order with this makespan ends the search
};

// Returns the order with the shortest makespan that the search finds. A population starts with the
// orders `seeds` and random ones. A parent is the shorter of two random orders. The child takes the
// clients of the first parent up to a random point, then the others in the order of the second
// parent (order crossover: Davis, IJCAI 1985, with one point). A mutation swaps two clients or
// moves one. The child replaces an order of equal makespan if there is one, else the worst. A
// population that has not improved for long is replaced by a random one. The search ends after
// several populations that brought nothing. So the result depends on the machine's speed only if
// the time limit comes first.
Order search_genetically(const Workload& workload, const std::vector<Order>& seeds,
                         const GeneticLimits& limits);

}  // namespace convoy::partition::sharing
