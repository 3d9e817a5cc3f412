// Measures the offsets between the steady clocks of ranks, as in Cristian, "Probabilistic clock
// synchronization", 1989.
#pragma once

#include <vector>

#include "comm/communicator.h"

namespace convoy::app {

// How much more a rank's clock shows than that of rank 0: about `ns` nanoseconds. The error of `ns`
// is at most `error_ns`, which is half of the fastest message's round trip.
struct ClockOffset {
  double ns = 0, error_ns = 0;
};

// Returns the offsets of all ranks on every rank. Collective.
std::vector<ClockOffset> measure_clock_offsets(const comm::Communicator& ranks);

}  // namespace convoy::app
