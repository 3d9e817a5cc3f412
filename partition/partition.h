// The partitioner runs every baseline, ParDNN and the anytime improvement, and returns the best
// placement that fits.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "partition/placement/improvement.h"
#include "partition/simulation/simulator.h"

namespace convoy::partition {

// The algorithm that makes the placement. kImprove takes the best of all the others, then runs the
// local search.
enum class Algorithm { kOneDevice, kContiguous, kHeft, kEtf, kMetis, kParDnn, kImprove };

// The names are one-device, contiguous, heft, m-etf, metis, pardnn and improve. algorithm_from
// throws std::runtime_error that lists them.
const char* algorithm_name(Algorithm algorithm);
Algorithm algorithm_from(std::string_view name);

struct PartitionOptions {
  Algorithm algorithm = Algorithm::kImprove;
  // Limits the time of partition_graph, except for the first candidate of a large graph. If it is
  // not set, only the search is limited: to about half a second for graphs below 20,000 nodes and
  // edges, and more in proportion for larger ones, counted in work units (work.h).
  std::optional<std::chrono::duration<double>> time_limit;
  std::int64_t move_limit =
      // The most moves that each local search tries. Unlike a limit on time, results repeat.
      std::numeric_limits<std::int64_t>::max();
  // Time to make a placement fit if no candidate fits after a short repair.
  std::chrono::nanoseconds repair_time = std::chrono::seconds(2);
  // Number of threads that make candidates and then run local searches. A small graph gets two
  // searches; with a single thread they run one after the other.
  unsigned threads = 2;
  std::uint64_t seed = 1;
};

struct Candidate {
  Algorithm algorithm = Algorithm::kOneDevice;
  Nanoseconds makespan = 0;
  bool fits = true;
  double seconds = 0;
};

struct PartitionResult {
  std::optional<Placement> placement;  // empty if nothing fits
  // If nothing fits: a proof of that, or the attempt that came closest to the limits.
  std::string reason;
  bool proven = false;                          // whether `reason` is a proof
  bool optimal = false;                         // whether no shorter placement exists
  Simulation simulation;                        // simulation of `placement`
  Algorithm algorithm = Algorithm::kOneDevice;  // the algorithm that made `placement`
  Nanoseconds lower_bound = 0, one_device = 0;
  // A lower bound on memory: no placement fits if every device has less than this. Even if every
  // device has this much, there may be no placement that fits.
  Bytes memory_floor = 0;
  // The candidates that were made. None is made after one that is as short as the lower bound.
  std::vector<Candidate> candidates;
  ImprovementCounts improvement;
};

// Throws std::runtime_error for pins beyond the machine. The returned placement never exceeds a
// memory limit.
PartitionResult partition_graph(const CostModel& cost, const PartitionOptions& options);

}  // namespace convoy::partition
