// Lower bounds on the makespan: no order of the clients ends earlier, with or without prefetching.
#pragma once

#include <vector>

#include "partition/sharing/client_simulator.h"

namespace convoy::partition::sharing {

// Each bound drops some rules of the simulation and solves the easier problem exactly:
//   1. One engine that may interrupt its work. Each operation has a head (the time of everything
//     before it) and a tail (after it). It is used for each copy engine, and for all compute
//     engines as one fast engine (Jackson 1955; Carlier, Eur. J. Oper. Res. 11(1), 1982).
//   2. Two engines in sequence, by Johnson's rule (Nav. Res. Logist. Q. 1(1), 1954): copies in with
//     kernels, and kernels with copies back. Ignall & Schrage (Oper. Res. 13(3), 1965) bound three
//     engines in this way.
//   3. Memory: clients that need more than half of it run one after the other, and the bytes × time
//     of all clients fit into memory × makespan.
class Bound {
 public:
  explicit Bound(const Workload& workload);

  Nanoseconds at_start() const;
  // Returns a lower bound on the makespan of a simulation with this progress (client_simulator.h),
  // whose copy engine is free. `admitted`: for each client, whether the copy engine has got it.
  Nanoseconds of(const Progress& progress, const std::vector<bool>& admitted) const;

 private:
  Nanoseconds one_engine_each() const;
  Nanoseconds copies_then_kernels(const Progress& progress, const std::vector<bool>& admitted) const;
  Nanoseconds kernels_then_copies_back(const Progress& progress, const std::vector<bool>& admitted) const;
  Nanoseconds memory(const Progress& progress, const std::vector<bool>& admitted) const;

  const Workload& workload_;
  const Nanoseconds engines_;
  Nanoseconds least_copy_back_ = 0;
  std::vector<ClientIndex> by_copy_in_, by_copy_back_;  // Johnson's orders for the two pairs of engines
};

}  // namespace convoy::partition::sharing
