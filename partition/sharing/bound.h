// Lower bounds on the makespan: no order of the clients ends earlier, with or without prefetching.
#pragma once

#include <vector>

#include "partition/sharing/simulator.h"

namespace convoy::partition::sharing {

// Relaxations of the model, each solved exactly.
//
// One engine that may interrupt its work, with what comes before as heads and what follows as tails
// (Jackson 1955; Carlier, Eur. J. Oper. Res. 11(1), 1982): for each of the copy engines, and for
// all compute engines as one fast engine.
//
// Two engines in sequence, by Johnson's rule (Nav. Res. Logist. Q. 1(1), 1954), as Ignall & Schrage
// (Oper. Res. 13(3), 1965) bound three: copies in with kernels, and kernels with copies back.
//
// Memory: clients of more than half of it one after the other, and bytes × time of all clients in a
// rectangle of memory × makespan.
class Bound {
 public:
  explicit Bound(const Workload& workload);

  Nanoseconds at_start() const;
  // Of a simulation whose copy engine is free, before the clients that are not yet `admitted` (by
  // client) come.
  Nanoseconds of(const Progress& progress, const std::vector<bool>& admitted) const;

 private:
  Nanoseconds one_engine_each() const;
  Nanoseconds copies_then_kernels(const Progress& progress, const std::vector<bool>& admitted) const;
  Nanoseconds kernels_then_copies_back(const Progress& progress, const std::vector<bool>& admitted) const;
  Nanoseconds memory(const Progress& progress, const std::vector<bool>& admitted) const;

  const Workload& workload_;
  const Nanoseconds engines_;
  Nanoseconds least_copy_back_ = 0;
  std::vector<ClientIndex> by_copy_in_, by_copy_back_;  // in Johnson's order, for the two pairs of engines
};

}  // namespace convoy::partition::sharing
