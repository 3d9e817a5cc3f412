// Makes the line that says why the job ends. It names the operation, the missing ranks with their
// hosts and processes, and what is known about them.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "comm/watchdog/rendezvous.h"
#include "comm/watchdog/wait_registry.h"

namespace convoy::comm {

struct Diagnosis {
  // Lines for standard error. There are none if the failing rank prints its own message.
  std::vector<std::string> lines;
};

// A rank that takes part in an overdue operation. `state` is its answer to the hub (the watchdog of
// rank 0), if it gave one.
struct Witness {
  RankIdentity who;
  std::optional<RankState> state;
};

// Returns for example "all_reduce gradients bucket 3 (step 120): no answer from rank 2 (host h, pid
// p) within 30 s: it does not respond at all: stopped, or its host is cut off; ending the job".
std::string describe_overdue(const OverdueWait& wait, const std::vector<Witness>& members,
                             std::chrono::milliseconds timeout);

// Returns for example "rank 2 (host h, pid p) died (killed or crashed) during all_reduce loss (step
// 7); ending the job". The operation is the one in which the rank with the state `survivor` was
// blocked.
std::string describe_death(const std::vector<RankIdentity>& dead, const RankState& survivor);

// Returns for example "all_reduce loss (step 7)".
std::string operation_at(const std::string& operation, std::int64_t step);

// Prints in one system call, so that lines of several ranks do not mix.
void print_lines(const std::vector<std::string>& lines);

}  // namespace convoy::comm
