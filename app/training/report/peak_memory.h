// The most memory that a run took.
#pragma once

#include <cstdint>

#include "comm/communicator.h"

namespace convoy::app {

struct PeakMemory {
  // What a rank reserved on its device for the steps: the arena, made once and never grown, which --memory-limit caps.
  // On host backends it is a part of the host's.
  std::int64_t device_bytes = 0;
  // The largest resident set of a rank's process, measured: the arena's pages that were touched, batches, libraries,
  // memory shared with other ranks.
  std::int64_t host_bytes = 0;
};

// The peak resident set of this process so far (VmHWM of /proc/self/status); 0 where the system does not tell.
std::int64_t peak_resident_bytes();

// Each of the rank that took most of it, on all ranks. Collective.
PeakMemory largest_peaks(const comm::Communicator& ranks, std::int64_t arena_bytes);

}  // namespace convoy::app
