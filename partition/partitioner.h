// The partitioner's parts: the candidates and how they are made to fit (candidates.cpp), the improvement of the best
// (improved.cpp), and what is made of them (partition.cpp).
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "partition/memory/overflow.h"
#include "partition/partition.h"

namespace convoy::partition {

class Partitioner {
 public:
  Partitioner(const CostModel& cost, const PartitionOptions& options)
      : cost_(cost),
        options_(options),
        units_(cost.graph(), cost.device_count()),
        lower_bound_(makespan_lower_bound(cost)) {}

  PartitionResult run();

 private:
  struct Entry {
    Candidate candidate;
    Placement placement;
    Bytes overflow = 0;  // before repair
    std::string reason;
    bool proven = false;
  };

  // The placement that spreads what must be live, repaired; or proof that none fits.
  struct Spread {
    Entry entry;
    std::optional<std::string> proof;
  };

  Placement place(Algorithm algorithm) const;
  void choose_order(Entry& entry) const;
  void fit(Entry& entry, Effort effort) const;
  const Spread& spread() const;
  void try_hard(Entry& entry) const;
  Entry make(Algorithm algorithm) const;
  std::vector<Entry> make_all() const;
  bool at_bound(const Candidate& candidate) const {
    return candidate.fits && candidate.makespan <= lower_bound_;
  }
  Clock::time_point deadline() const;
  Nanoseconds one_device(const std::vector<Entry>& entries) const;
  Entry improved(const Entry& best, bool repaired, ImprovementCounts& counts) const;
  Placement second_search(const Entry& best, ImprovementLimits limits) const;
  Entry better_start(const Entry& best, bool repaired) const;
  void try_all_placements(Entry& best) const;

  const CostModel& cost_;
  const PartitionOptions& options_;
  const Units units_;
  const Nanoseconds lower_bound_;
  mutable std::once_flag spread_once_;
  mutable Spread spread_;
};

inline double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace convoy::partition
