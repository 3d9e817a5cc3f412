// Shows where the ranks run (rank, host, local rank, cores, device) and binds each rank to its own
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
  int local_rank = 0;  // the rank's number among the ranks of its host
  int pid = 0;
  std::vector<int> cores;  // logical processors on which the rank may run, ascending
  std::string device;      // name of the rank's device; empty without a device
};

// Returns one element per rank on rank 0 and none on the other ranks. Call it after pin_to_cores.
// Collective.
std::vector<RankPlacement> gather_placement(const Communicator& world, std::string_view device = {});

// Returns the logical processors on which this thread may run (sched_getaffinity), ascending.
// Throws std::runtime_error with the system's reason.
std::vector<int> allowed_cores();

// Returns for example "0-3,8", or "none".
std::string format_cores(std::span<const int> cores);

// Binds the calling thread, and all threads that it starts later, to this rank's share of the
// cores. Collective. Call it before any worker thread starts. Returns the rank's cores, with
// hardware threads of one core next to each other.
//
// Cores that mpirun, Slurm or a cgroup has forbidden are never used. Ranks whose sets of allowed
// cores are equal divide the set in rank order, so that hardware threads of a core and cores of a
// package go to the same rank. `near` are the cores next to this rank's device. If the rank may use
// any of these, it uses only these.
std::vector<int> pin_to_cores(const Communicator& world, std::span<const int> near = {});

// Returns the cores of `allowed` that are also in `near`, in the order of `allowed`. Returns all of
// `allowed` if no core is in both.
std::vector<int> prefer_near(const std::vector<int>& allowed, std::span<const int> near);

// Returns the cores for the rank `local_rank` of this host. Element r of `allowed` has the cores
// that local rank r may use, with neighbouring cores next to each other. Ranks with equal lists
// divide the list among themselves; a rank whose list no other rank has keeps all of it.
std::vector<int> share_of_cores(const std::vector<std::vector<int>>& allowed, int local_rank);

}  // namespace convoy::comm
