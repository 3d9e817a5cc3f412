// Measures how far the steady clocks of ranks are apart, after Cristian ("Probabilistic clock
// synchronization", 1989).
#pragma once

#include <vector>

#include "comm/communicator.h"

namespace convoy::app {

// A rank's clock reads `ns` nanoseconds more than rank 0's. The truth is within `error_ns` of it,
// half of the fastest round trip.
struct ClockOffset {
  double ns = 0, error_ns = 0;
};

// Returns the offsets of all ranks on every rank. Collective.
std::vector<ClockOffset> measure_clock_offsets(const comm::Communicator& ranks);

}  // namespace convoy::app
