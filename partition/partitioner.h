// The class Partitioner, used only inside partition/. Its functions are in candidates.cpp
// (candidates and their repair), improved.cpp and limited.cpp (improvement without and with memory
// limits), fewer_devices.cpp (improvement on part of the devices) and partition.cpp (choice of the
// result).
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "partition/memory/overflow.h"
#include "partition/partition.h"

namespace convoy::partition {

// How much Partitioner searches.
enum class Rounds {
  kOneSearch,      // once, on all devices
  kShort,          // several times, also on fewer devices, and then in a few short rounds
  kUntilDeadline,  // then also in rounds until the time limit
};

class Partitioner {
 public:
  Partitioner(const CostModel& cost, const PartitionOptions& options)
      : cost_(cost),
        options_(options),
        units_(cost.graph(), cost.device_count()),
        lower_bound_(makespan_lower_bound(cost)) {}

  PartitionResult run();
  // Does the same with fewer rounds of search.
  PartitionResult run_with(Rounds rounds) {
    rounds_ = rounds;
    return run();
  }

 private:
  struct Entry {
    Candidate candidate;
    Placement placement;
    Bytes overflow = 0;  // bytes above the memory limits, before the repair
    std::string reason;
    bool proven = false;
  };

  Placement place(Algorithm algorithm) const;
  void choose_order(Entry& entry) const;
  void fit(Entry& entry, Effort effort, std::chrono::nanoseconds most) const;
  Entry make(Algorithm algorithm) const;
  std::vector<Entry> make_all();
  // Returns whether the algorithm would run beyond the time limit, by an estimate from the time of
  // contiguous placement.
  bool takes_too_long(Algorithm algorithm) const;
  Entry made_to_fit(const std::vector<Entry>& entries) const;
  Entry searched_exactly(const Candidate& best, bool& complete) const;
  bool at_bound(const Candidate& candidate) const {
    return candidate.fits && candidate.makespan <= lower_bound_;
  }
  Clock::time_point deadline() const;  // end of the time limit; max() if there is none
  std::chrono::nanoseconds left() const;
  // Returns whether the graph is small enough for several searches. A larger graph gets a single
  // search, with work in proportion to its size.
  bool small() const {
    constexpr std::int64_t kMostNodesAndEdges = 20'000;
    return size() <= kMostNodesAndEdges;
  }
  std::int64_t size() const { return std::int64_t{cost_.graph().node_count()} + cost_.graph().edge_count(); }
  static constexpr int kShortRounds = 4;
  ImprovementLimits search_limits(int round = 0) const;
  ImprovementLimits limits_without_memory(int round = 0) const;
  static bool ample_time(const ImprovementLimits& limits, std::int64_t searches);
  static Clock::time_point share_of_time(Clock::time_point deadline, std::int64_t parts);
  static ImprovementLimits share_of(ImprovementLimits limits, std::int64_t parts);
  static ImprovementLimits short_part(ImprovementLimits limits, std::int64_t parts);
  void improve_until_deadline(const Candidate& best, int first, const std::function<void(int)>& search) const;
  void search_again(const Placement& first, Entry& best, int round, ImprovementCounts& counts) const;
  std::optional<Nanoseconds> one_device(const std::vector<Entry>& entries) const;
  bool halves() const;
  bool half_may_be_shorter(Nanoseconds makespan) const;
  std::optional<Placement> on_half(Nanoseconds makespan, ImprovementCounts& counts) const;
  Entry improved(const std::vector<Entry>& entries, ImprovementCounts& counts) const;
  Entry improved_under_limits(const std::vector<Entry>& entries, ImprovementCounts& counts) const;
  Machine with_limits(double share) const;
  std::vector<double> tighter_limits() const;
  Bytes largest_limit() const;
  Bytes largest_peak(const Simulation& simulation) const;
  PartitionResult without_limits() const;
  Placement ordered(Placement placement) const;
  std::vector<double> ladder(Bytes peak) const;
  Placement climb(const std::vector<double>& shares, std::size_t first,
                  const std::function<const Placement&(std::size_t)>& start_of, std::int64_t divisor,
                  ImprovementCounts& counts) const;
  void climb_twice(const PartitionResult& open, const std::function<void(const Placement&)>& take,
                   ImprovementCounts& counts) const;
  void search_own_limits(const Entry& best, int round, const std::function<void(const Placement&)>& take,
                         ImprovementCounts& counts) const;
  void run_tasks(const std::vector<std::function<Placement()>>& tasks,
                 const std::function<void(const Placement&)>& take) const;
  std::optional<Placement> repaired_to_tighter(std::chrono::nanoseconds most) const;
  Nanoseconds makespan_of(const Placement& placement) const {
    return simulate(cost_, placement, Detail::kTimes).makespan;
  }
  Placement search_once(const Placement& start, ImprovementLimits limits, ImprovementCounts& counts) const;
  Placement search_each_width(const Placement& start, const ImprovementLimits& limits,
                              ImprovementCounts& counts) const;
  Placement second_search(const Entry& best, ImprovementLimits limits) const;
  // Returns whether any placement exceeded the memory limits before its repair. If so, the limits
  // matter for this graph.
  static bool any_repaired(const std::vector<Entry>& entries) {
    return std::any_of(entries.begin(), entries.end(), [](const Entry& entry) { return entry.overflow > 0; });
  }
  Entry better_start(const std::vector<Entry>& entries) const;
  void try_all_placements(Entry& best) const;

  const CostModel& cost_;
  const PartitionOptions& options_;
  const Units units_;
  const Nanoseconds lower_bound_;
  const Clock::time_point begin_ = Clock::now();
  double contiguous_seconds_ = 0;  // time of contiguous placement, if there is a time limit
  Rounds rounds_ = Rounds::kUntilDeadline;
};

inline double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace convoy::partition
