// Makes ranks fail together: an error on one rank ends the job on every rank, with one message.
#pragma once

#include <exception>
#include <functional>
#include <string_view>

#include "comm/communicator.h"

namespace convoy::app {

// Runs `body` on every rank. If it throws on some ranks, the lowest of these ranks rethrows its
// exception. Every other rank throws ExitStatus with the same exit status. So no rank waits for a
// rank that has ended. Collective. `label` names this operation in the report about a rank that
// takes too long.
void run_on_all_ranks(const comm::Communicator& ranks, const std::function<void()>& body,
                      std::string_view label = "failures of the ranks");

}  // namespace convoy::app
