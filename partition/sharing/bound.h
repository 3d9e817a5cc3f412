// Lower bounds on the makespan of all orders of the clients, with or without prefetching.
#pragma once

#include <vector>

#include "partition/sharing/client_simulator.h"

namespace convoy::partition::sharing {

// Each bound drops some rules of the simulation and solves the easier problem exactly:
//   1. One engine that may interrupt its work. An operation cannot start before its head (the time
//     of everything before it), and its tail (the time of everything after it) must follow. This
//     is applied to each copy engine, and to all compute engines as a single fast engine (Jackson
//     1955; Carlier, Eur. J. Oper. Res. 11(1), 1982).
//   2. Two engines in sequence, by Johnson's rule (Nav. Res. Logist. Q. 1(1), 1954): copies in and
//     kernels, or kernels and copies back. Ignall & Schrage (Oper. Res. 13(3), 1965) bound three
//     engines in this way.
//   3. Memory: clients that need more than half of it run one after the other. And the sum of
//     bytes × time over all clients is at most memory × makespan.
class Bound {
 public:
  explicit Bound(const Workload& workload);

  Nanoseconds at_start() const;
  // Returns a lower bound on the makespan of a simulation with this remaining work
  // (client_simulator.h) whose copy engine is free. admitted[client] tells whether the client was
  // already admitted.
  Nanoseconds of(const RemainingWork& remaining, const std::vector<bool>& admitted) const;

 private:
  Nanoseconds one_engine_each() const;
  Nanoseconds copies_then_kernels(const RemainingWork& remaining, const std::vector<bool>& admitted) const;
  Nanoseconds kernels_then_copies_back(const RemainingWork& remaining,
                                       const std::vector<bool>& admitted) const;
  Nanoseconds memory(const RemainingWork& remaining, const std::vector<bool>& admitted) const;

  const Workload& workload_;
  const Nanoseconds engines_;
  Nanoseconds least_copy_back_ = 0;
  // Johnson's orders for the two pairs of engines: copies in with kernels, kernels with copies
  // back.
  std::vector<ClientIndex> by_copy_in_, by_copy_back_;
};

}  // namespace convoy::partition::sharing
