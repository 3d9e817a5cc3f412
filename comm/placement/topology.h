// Where the ranks run: rank -> host -> local rank -> cores -> device, and the binding of each rank to its own
// cores.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.h"

namespace convoy::comm {

struct RankPlacement {
  int rank = 0;
  std::string host;
  int local_rank = 0;  // among the ranks of its host
  int pid = 0;
  std::vector<int> cores;  // logical processors on which the rank may run, ascending
  std::string device;      // empty for ranks without one
};

// Collective. Element r is rank r at rank 0; nothing elsewhere. Call it after pin_to_cores.
std::vector<RankPlacement> gather_placement(const Communicator& world, std::string_view device = {});

// The logical processors on which this thread may run (sched_getaffinity), ascending. Throws
// std::runtime_error with the system's reason.
std::vector<int> allowed_cores();

// "0-3,8"; "none" for no core.
std::string format_cores(std::span<const int> cores);

// Collective. Binds the calling thread, and with it all threads that it starts from now on, to this rank's
// share of the cores that the rank may use. What mpirun, Slurm or a cgroup has decided stays: ranks that are
// already bound apart keep their cores; ranks that were given the same cores divide them, in the order of
// their ranks, so that the hardware threads of a core and the cores of a package stay together. Call it
// before any worker thread is started. The result is where this rank now runs, in the order of share_of_cores.
//
// `near`: the cores next to this rank's device. A rank that may use some of them keeps to those, so that ranks with
// devices on different sockets divide their own sockets; empty, or none of them allowed: no preference.
std::vector<int> pin_to_cores(const Communicator& world, std::span<const int> near = {});

// The members of `allowed` that are near, in their order; all of `allowed` when that would leave none.
std::vector<int> prefer_near(const std::vector<int>& allowed, std::span<const int> near);

// The division: `allowed` holds the cores of each rank of the host, in an order in which neighbours belong
// together. Ranks with different sets are taken as bound apart.
std::vector<int> share_of_cores(const std::vector<std::vector<int>>& allowed, int local_rank);

}  // namespace convoy::comm
