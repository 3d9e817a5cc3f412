// A genetic search for a short order of the clients.
#pragma once

#include "partition/sharing/policies.h"

namespace convoy::partition::sharing {

struct GeneticLimits {
  std::uint64_t seed = 1;
  std::chrono::duration<double> time = std::chrono::seconds(1);
  Nanoseconds bound = 0;  // an order with this makespan ends the search
};

// A population starts with the given orders and random ones. A parent is the shorter of two random
// orders. The child takes the first parent's clients up to a random point and the others in the
// order of the second parent (order crossover: Davis, IJCAI 1985, with one point). Mutations swap
// two clients or move one.
// The child replaces an order of its own length if there is one, else the longest order. A
// population that has long gained nothing is replaced by a random one, and the search ends after
// several that gained nothing. So the result depends on the machine only if the time ends first.
Order search_genetically(const Workload& workload, const std::vector<Order>& seeds,
                         const GeneticLimits& limits);

}  // namespace convoy::partition::sharing
