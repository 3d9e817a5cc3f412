// The partitioner runs all its placement algorithms and a local search, and returns the best
// placement that fits into memory.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "partition/placement/improvement.h"
#include "partition/simulation/simulator.h"

namespace convoy::partition {

// The algorithm that makes the placement. kImprove runs all the others, takes the best result, and
// improves it by local search.
enum class Algorithm { kOneDevice, kContiguous, kHeft, kEtf, kMetis, kParDnn, kImprove };

// The names are one-device, contiguous, heft, m-etf, metis, pardnn and improve. For other names,
// algorithm_from() throws a std::runtime_error that lists these.
const char* algorithm_name(Algorithm algorithm);
Algorithm algorithm_from(std::string_view name);

struct PartitionOptions {
  Algorithm algorithm = Algorithm::kImprove;
  // Limits the run time of partition_graph(), except for contiguous placement and the step at hand.
  // If not set, only the local search is limited, in units of work (work.h), so that results are
  // reproducible. The units amount to about two seconds for graphs of fewer than 10,000 nodes and
  // edges, and to half a second for graphs of up to 20,000. For larger ones they are 0.25 µs per
  // node and edge, at most 1.2 s.
  //
  // With a time limit, the same searches come first, and then rounds of further searches from the
  // best result. So on graphs of up to 20,000 nodes and edges the time limit never lengthens the
  // schedule if it is at least as long as a run without a time limit takes. Under memory limits it
  // must be several times as long.
  std::optional<std::chrono::duration<double>> time_limit;
  // The units of work of one of the first local searches in a graph of up to 20,000 nodes and
  // edges.
  std::int64_t search_work = 500'000'000;
  std::int64_t move_limit =
      // The most moves that each local search tries. Unlike with a time limit, results are
      // reproducible.
      std::numeric_limits<std::int64_t>::max();
  // The time to make a placement fit, if none fits after a short repair.
  std::chrono::nanoseconds repair_time = std::chrono::seconds(2);
  // The number of threads. They make the candidates and then run the local searches. A small graph
  // gets several searches. The result does not depend on the number of threads.
  unsigned threads = 2;
  std::uint64_t seed = 1;
};

struct Candidate {
  Algorithm algorithm = Algorithm::kOneDevice;
  Nanoseconds makespan = 0;
  bool fits = true;
  double seconds = 0;
};

// Whether all schedules were examined, as is tried for small graphs. kGaveUp: the search reached
// the limit of its work or the time limit before.
enum class CompleteSearch { kNotTried, kDone, kGaveUp };

struct PartitionResult {
  std::optional<Placement> placement;  // empty if no placement fits
  // If no placement fits: a proof of this, or the attempt that came closest to the limits.
  std::string reason;
  bool proven = false;   // whether `reason` is a proof
  bool optimal = false;  // whether no shorter placement exists
  CompleteSearch complete_search = CompleteSearch::kNotTried;
  Simulation simulation;                        // simulation of `placement`
  Algorithm algorithm = Algorithm::kOneDevice;  // the algorithm that made `placement`
  Nanoseconds lower_bound = 0;
  // The makespan on one device, even if its memory limit forbids that. Empty if nodes are pinned to
  // several devices.
  std::optional<Nanoseconds> one_device;
  // A lower bound on memory. If every device has less than this, no placement fits. If every device
  // has this much, there may still be none that fits.
  Bytes memory_floor = 0;
  // The candidates that were made. No more are begun after one that fits and is as short as the
  // lower bound.
  std::vector<Candidate> candidates;
  ImprovementCounts improvement;
};

// Throws std::runtime_error for pins to devices that the machine does not have. The returned
// placement never exceeds a memory limit.
PartitionResult partition_graph(const CostModel& cost, const PartitionOptions& options);

}  // namespace convoy::partition
