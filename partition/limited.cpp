// Improves under memory limits: searches from several placements, also under tighter limits than the
// machine's. One large reduction of memory can cost less than many small ones, and a looser limit
// should find what a tighter one finds.
#include <array>
#include <atomic>
#include <cmath>
#include <thread>

#include "partition/memory/live_cut.h"
#include "partition/partitioner.h"
#include "partition/placement/baselines.h"

namespace convoy::partition {

Machine Partitioner::with_limits(double share) const {
  Machine machine = cost_.machine();
  for (DeviceIndex device = 0; device < machine.device_count(); ++device)
    if (Bytes& limit = machine.device(device).memory_limit; limit != kUnlimited)
      limit = static_cast<Bytes>(share * static_cast<double>(limit));
  return machine;
}

// Returns the tighter limits to search under, as shares of the machine's. What they exceed the least
// limit by are powers of one number, so that machines with different limits have them in common.
std::vector<double> Partitioner::tighter_limits() const {
  constexpr double kRatio = 0.84;
  constexpr int kMostSteps = 7;
  Bytes largest = 0;
  for (DeviceIndex device = 0; device < cost_.device_count(); ++device)
    if (const Bytes limit = cost_.machine().device(device).memory_limit; limit != kUnlimited)
      largest = std::max(largest, limit);
  const auto floor = static_cast<double>(std::max<Bytes>(1, memory_floor(cost_, units_)));
  std::vector<double> shares;
  if (static_cast<double>(largest) <= floor) return shares;
  const double first = std::ceil(std::log(static_cast<double>(largest) / floor - 1) / std::log(kRatio));
  for (int step = 0; step < kMostSteps; ++step)
    shares.push_back(floor * (1 + std::pow(kRatio, first + step)) / static_cast<double>(largest));
  return shares;
}

// Repairs three placements to the limits of the machine, and returns the shortest that fits.
std::optional<Placement> Partitioner::repaired_to(const CostModel& cost) const {
  std::optional<Placement> shortest;
  Nanoseconds makespan = std::numeric_limits<Nanoseconds>::max();
  for (const Algorithm algorithm : {Algorithm::kParDnn, Algorithm::kHeft, Algorithm::kMetis}) {
    if (left().count() == 0) return shortest;
    Entry start;
    start.placement = place(algorithm);
    choose_order(start);
    const OverflowResult repaired =
        fit_memory(cost, units_, start.placement, Effort::kQuick, std::chrono::milliseconds(200), deadline());
    if (!repaired.placement) continue;
    const Nanoseconds its = simulate(cost, *repaired.placement, Detail::kTimes).makespan;
    if (its < makespan) makespan = its, shortest = *repaired.placement;
  }
  return shortest;
}

// Runs the tasks on as many threads as the options allow. Their results do not depend on that.
void Partitioner::run_tasks(const std::vector<std::function<Placement()>>& tasks,
                            const std::function<void(const Placement&)>& take) const {
  std::vector<Placement> results(tasks.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < tasks.size(); i = next++) results[i] = tasks[i]();
  };
  {
    std::vector<std::jthread> helpers;
    for (unsigned thread = 1; thread < std::min<std::size_t>(options_.threads, tasks.size()); ++thread)
      helpers.emplace_back(work);
    work();
  }
  for (const Placement& placement : results)
    if (!placement.device_of.empty()) take(placement);
}

// A placement that exceeds the limits often stays short after the search has made it fit. So this
// searches from METIS's and ParDNN's placements under several limits, then goes on with the best.
Partitioner::Entry Partitioner::improved_under_limits(const std::vector<Entry>& entries,
                                                      ImprovementCounts& counts) const {
  const Clock::time_point begin = Clock::now();
  Entry entry = better_start(entries);
  const auto consider = [&](const Placement& placement) {
    const Simulation simulation = simulate(cost_, placement);
    if (memory_overflow(cost_.machine(), simulation) > 0 || simulation.makespan >= entry.candidate.makespan)
      return;
    entry.placement = placement, entry.candidate.makespan = simulation.makespan;
  };
  std::array<Entry, 2> whole;
  whole[0].placement = place(Algorithm::kMetis), whole[1].placement = place(Algorithm::kParDnn);
  for (Entry& start : whole) choose_order(start);
  constexpr std::int64_t kParts = 4;  // the first searches take this part of the time of the last
  std::vector<double> shares = tighter_limits();
  shares.insert(shares.begin(), 1);
  const auto tasks_per_thread = static_cast<std::int64_t>(shares.size() + 1) / options_.threads + 1;
  std::vector<std::function<Placement()>> tasks;
  const auto add_search = [&](double share, const Placement& start) {
    tasks.push_back([&, share] {
      const Machine machine = with_limits(share);
      const CostModel cost(cost_.graph(), machine);
      ImprovementLimits limits =
          share_of(search_limits(), options_.time_limit ? 2 * tasks_per_thread : kParts);
      limits.fit_at_any_cost = true;
      return improve(cost, units_, start, limits);
    });
  };
  const Entry first = entry;
  add_search(1, first.placement);
  for (std::size_t i = 0; i < shares.size(); ++i) add_search(shares[i], whole[i % 2].placement);
  run_tasks(tasks, consider);
  tasks.clear();
  const Entry best = entry;
  for (int search = 0; search < 2; ++search)
    tasks.push_back([&, search] {
      ImprovementLimits limits = search_limits();
      limits.seed += search;
      if (search == 1) limits.temperature /= 10;
      return improve(cost_, units_, best.placement, limits, search == 0 ? &counts : nullptr);
    });
  run_tasks(tasks, consider);
  entry.candidate.algorithm = Algorithm::kImprove;
  try_all_placements(entry);
  entry.candidate.seconds = seconds_since(begin);
  return entry;
}

}  // namespace convoy::partition
