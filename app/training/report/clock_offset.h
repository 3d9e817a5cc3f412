// How far the ranks' steady clocks are apart, after Cristian ("Probabilistic clock synchronization", 1989).
#pragma once

#include <vector>

#include "comm/communicator.h"

namespace convoy::app {

// A rank's clock reads `ns` more than rank 0's at the same moment; the truth is within `error_ns` of it, half of the
// fastest exchange's time there and back.
struct ClockOffset {
  double ns = 0, error_ns = 0;
};

// Of every rank, on every rank. Collective.
std::vector<ClockOffset> measure_clock_offsets(const comm::Communicator& ranks);

}  // namespace convoy::app
