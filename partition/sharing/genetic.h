// A genetic search for a short order of the clients.
#pragma once

#include "partition/sharing/policies.h"

namespace convoy::partition::sharing {

struct GeneticLimits {
  std::uint64_t seed = 1;
  std::chrono::duration<double> time = std::chrono::seconds(1);
  Nanoseconds bound = 0;  // an order as short as this ends the search
};

// A population begins with the given orders and random ones. Two parents are each the shorter of
// two drawn ones; their child has the first parent's clients up to a point and the others in the
// second parent's order (order crossover: Davis, IJCAI 1985, with one point). A mutation swaps two
// clients or moves one, so that every order stays valid. The child takes the place of an equally
// long order, or the longest order leaves. When a population has long gained nothing a new one is
// drawn, and when several have gained nothing the search ends: only if the time ends first does the
// result depend on the machine.
Order search_genetically(const Workload& workload, const std::vector<Order>& seeds,
                         const GeneticLimits& limits);

}  // namespace convoy::partition::sharing
