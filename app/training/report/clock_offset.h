// Measures the offsets between the steady clocks of ranks, as in Cristian, "Probabilistic clock
// synchronization", 1989.
#pragma once

#include <vector>

#include "comm/communicator.h"

namespace convoy::app {

// The clock of a rank minus the clock of rank 0: about `ns` nanoseconds. The error is at most
// `error_ns`, half of the shortest round trip of a message.
struct ClockOffset {
  double ns = 0, error_ns = 0;
};

// Returns the offsets of all ranks on every rank. Collective.
std::vector<ClockOffset> measure_clock_offsets(const comm::Communicator& ranks);

}  // namespace convoy::app
