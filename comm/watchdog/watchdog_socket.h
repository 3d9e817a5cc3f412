// Connects the watchdogs of all ranks, with MPI to tell them rank 0's address.
#pragma once

#include <chrono>

#include "comm/communicator.h"
#include "comm/watchdog/watchdog.h"

namespace convoy::comm {

// Collective. `device` names this rank's in messages. When a rank cannot be reached no rank gets a link, and rank 0 says so on standard error: the
// job runs, waits are still bounded, but missing ranks are not named.
SideChannel open_side_channel(const Communicator& world, std::chrono::milliseconds timeout,
                              const std::string& device = {});

}  // namespace convoy::comm
