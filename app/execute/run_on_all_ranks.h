// Failing together: what one rank finds wrong ends the job on every rank, with one message.
#pragma once

#include <exception>
#include <functional>
#include <string_view>

#include "comm/communicator.h"

namespace convoy::app {

// Runs `body` on every rank. Where it throws anywhere, the lowest of those ranks rethrows its exception and every other
// rank throws ExitStatus with the same exit status, so that nobody waits for a rank that has left. Collective; `label`
// says what for when a rank takes too long.
void run_on_all_ranks(const comm::Communicator& ranks, const std::function<void()>& body,
                      std::string_view label = "failures of the ranks");

}  // namespace convoy::app
