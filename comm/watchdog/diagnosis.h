// What the watchdogs conclude and how they say it: one line that names the operation, the missing ranks with
// their hosts and processes, and what is known of them.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "comm/watchdog/rendezvous.h"
#include "comm/watchdog/wait_registry.h"

namespace convoy::comm {

struct Verdict {
  std::vector<std::string> lines;  // for standard error; none when the failing rank speaks for itself
};

// A member of an overdue operation and its answer, if it gave one.
struct Witness {
  RankIdentity who;
  std::optional<RankState> state;
};

// "all_reduce gradients bucket 3 (step 120): no answer from rank 2 (host h, pid p) within 30 s: it does not
// respond at all: stopped, or its host is cut off; ending the job"
std::string describe_overdue(const OverdueWait& wait, const std::vector<Witness>& members,
                             std::chrono::milliseconds timeout);

// "rank 2 (host h, pid p) died (killed or crashed) during all_reduce loss (step 7); ending the job". `during`
// is what the survivor that says so was blocked in.
std::string describe_death(const std::vector<RankIdentity>& dead, const RankState& survivor);

// "all_reduce loss (step 7)"
std::string operation_at(const std::string& operation, std::int64_t step);

// In one system call, so that the lines of several ranks do not mix.
void print_lines(const std::vector<std::string>& lines);

}  // namespace convoy::comm
