// Makes ranks fail together: an error on one rank ends the job on every rank, with one message.
#pragma once

#include <exception>
#include <functional>
#include <string_view>

#include "comm/communicator.h"

namespace convoy::app {

// Runs `body` on every rank. If it throws on any rank, the lowest of those rethrows its exception.
// Every other rank throws ExitStatus with the same exit status, so no rank waits for one that has
// left.
// Collective. `label` names the operation in the report about a rank that takes too long.
void run_on_all_ranks(const comm::Communicator& ranks, const std::function<void()>& body,
                      std::string_view label = "failures of the ranks");

}  // namespace convoy::app
