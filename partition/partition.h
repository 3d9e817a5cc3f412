// The partitioner: every baseline, ParDNN and the anytime improvement under one roof; the best that fits is the answer.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "partition/placement/improvement.h"
#include "partition/simulation/simulator.h"

namespace convoy::partition {

// What a placement is asked for. `improve`: the best of all the others, then the local search.
enum class Algorithm { kOneDevice, kContiguous, kHeft, kEtf, kMetis, kParDnn, kImprove };

// one-device, contiguous, heft, m-etf, metis, pardnn, improve. algorithm_from throws std::runtime_error listing them.
const char* algorithm_name(Algorithm algorithm);
Algorithm algorithm_from(std::string_view name);

struct PartitionOptions {
  Algorithm algorithm = Algorithm::kImprove;
  // Of all that partition_graph does, but for the first candidate of a large graph. Without it, of
  // the improvement alone: half a second for graphs below 20,000 nodes and edges (a whole one with
  // one thread), and for larger ones 0.3 of what was used since `began`, so that the whole stays
  // near-linear in the graph, and 2.5 seconds at most.
  std::optional<std::chrono::duration<double>> time_limit;
  std::int64_t move_limit = std::numeric_limits<std::int64_t>::max();  // the same, countable: results repeat
  Clock::time_point began = Clock::now();                              // of the whole run, loading included
  // For making a placement fit where no candidate does after a short repair.
  std::chrono::nanoseconds repair_time = std::chrono::seconds(2);
  unsigned threads =
      2;  // candidates at a time, then local searches; two of those there are with one thread, too
  std::uint64_t seed = 1;
};

struct Candidate {
  Algorithm algorithm = Algorithm::kOneDevice;
  Nanoseconds makespan = 0;
  bool fits = true;
  double seconds = 0;
};

struct PartitionResult {
  std::optional<Placement> placement;           // absent when nothing fits
  std::string reason;                           // then: the certificate, or the closest attempt
  bool proven = false;                          // whether `reason` is a proof
  bool optimal = false;                         // whether nothing shorter exists
  Simulation simulation;                        // of the placement
  Algorithm algorithm = Algorithm::kOneDevice;  // where it came from
  Nanoseconds lower_bound = 0, one_device = 0;
  Bytes memory_floor = 0;  // with less on each device nothing fits; with as much, something may not either
  std::vector<Candidate>
      candidates;  // without those that came after one as short as the bound: nothing is shorter
  ImprovementCounts improvement;
};

// Throws std::runtime_error for pins beyond the machine. With memory limits the placement never exceeds one.
PartitionResult partition_graph(const CostModel& cost, const PartitionOptions& options);

}  // namespace convoy::partition
