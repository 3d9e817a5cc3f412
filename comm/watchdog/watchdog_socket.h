// Connects the watchdogs of all ranks (rendezvous.h). MPI carries rank 0's address.
#pragma once

#include <chrono>

#include "comm/communicator.h"
#include "comm/watchdog/watchdog.h"

namespace convoy::comm {

// Collective. `device` names this rank's device in messages. If any rank cannot connect, no rank
// gets a connection, and rank 0 prints a warning. The timeout then still ends waits, but the
// message does not name the missing ranks.
WatchdogSocket open_watchdog_socket(const Communicator& world, std::chrono::milliseconds timeout,
                                    const std::string& device = {});

}  // namespace convoy::comm
