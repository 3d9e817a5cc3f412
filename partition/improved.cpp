// The improvement of the best candidate: better starts, the local search for as long as there is time, and for tiny graphs all
// placements.
#include <algorithm>

#include "partition/memory/live_cut.h"
#include "partition/partitioner.h"
#include "partition/placement/baselines.h"
#include "partition/placement/exhaustive.h"

namespace convoy::partition {

Clock::time_point Partitioner::deadline() const {
  if (options_.move_limit != std::numeric_limits<std::int64_t>::max() && !options_.time_limit)
    return Clock::time_point::max();
  std::chrono::duration<double> time{0.5};
  constexpr std::int64_t kSmall = 20000;
  constexpr std::chrono::duration<double> kLongest{2.5};
  if (options_.time_limit)
    time = *options_.time_limit;
  else if (std::int64_t{cost_.graph().node_count()} + cost_.graph().edge_count() > kSmall)
    time = std::min<std::chrono::duration<double>>(0.3 * (Clock::now() - options_.began), kLongest);
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(time);
}

// HEFT with other weights for the transfers in its ranks: milliseconds, and on some graphs some per cent.
Partitioner::Entry Partitioner::better_start(const Entry& best, bool repaired) const {
  constexpr std::int64_t kLarge = 300'000;
  Entry start = best;
  if (std::int64_t{cost_.graph().node_count()} + cost_.graph().edge_count() > kLarge) return start;
  const auto consider = [&](Placement placement) {
    Entry entry;
    entry.placement = std::move(placement);
    choose_order(entry);
    if (entry.candidate.makespan >= start.candidate.makespan) return;
    fit(entry, Effort::kQuick);
    if (entry.candidate.fits && entry.candidate.makespan < start.candidate.makespan) start = std::move(entry);
  };
  for (const double weight : {0.5, 2.0}) consider(place_by_heft(cost_, units_, weight));
  // Where limits bind, what spreads the memory from the beginning may lose less than what was made to fit.
  if (repaired) consider(place_by_memory(cost_, units_, find_live_cut(cost_)));
  return start;
}

// A graph with few placements: list scheduling of each of them.
void Partitioner::try_all_placements(Entry& best) const {
  constexpr double kMostPlacements = 1 << 12;
  if (placement_count(units_, cost_.device_count()) > kMostPlacements) return;
  for_each_placement(cost_.graph(), units_, cost_.device_count(),
                     [&](const std::vector<DeviceIndex>& device_of) {
                       Placement placement{cost_.device_count(), device_of, {}};
                       Simulation simulation = simulate(cost_, placement);
                       const bool fits = memory_overflow(cost_.machine(), simulation) == 0;
                       if (!fits || (best.candidate.fits && simulation.makespan >= best.candidate.makespan))
                         return true;
                       placement.order = std::move(simulation.order);
                       best.placement = std::move(placement);
                       best.candidate.makespan = simulation.makespan;
                       best.candidate.fits = true;
                       return true;
                     });
}

Partitioner::Entry Partitioner::improved(const Entry& best, bool repaired, ImprovementCounts& counts) const {
  const Clock::time_point begin = Clock::now();
  ImprovementLimits limits;
  limits.deadline = deadline();
  limits.moves = options_.move_limit;
  // Within a hundred-thousandth of the bound there is nothing left to gain.
  limits.good_enough = lower_bound_ + lower_bound_ / 100'000;
  limits.seed = options_.seed;
  if (cost_.machine().limited())
    limits.accept = [&](const Placement& placement) {
      return memory_overflow(cost_.machine(), simulate(cost_, placement)) == 0;
    };
  Entry entry = better_start(best, repaired);
  entry.candidate.algorithm = Algorithm::kImprove;
  entry.placement = improve(cost_, units_, entry.placement, limits, &counts);
  entry.candidate.makespan = simulate(cost_, entry.placement, Detail::kTimes).makespan;
  try_all_placements(entry);
  entry.candidate.seconds = seconds_since(begin);
  return entry;
}

}  // namespace convoy::partition
