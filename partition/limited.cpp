// Improves a placement under memory limits. Searches from several placements, and also under
// tighter limits than the machine's: reducing memory once by much can cost less time than often by
// little. In this way a machine with a looser limit also finds what one with a tighter limit finds.
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
      limit = std::llround(share * static_cast<double>(limit));
  return machine;
}

// Returns the tighter limits to search under: memory_floor() × (1 + kRatio^number) for whole
// numbers, so that machines with different limits search under the same ones. Expresses them as
// shares of the machine's limits.
std::vector<Partitioner::TighterLimit> Partitioner::tighter_limits() const {
  constexpr double kRatio = 0.84;
  constexpr int kMostSteps = 7;
  Bytes largest = 0;
  for (DeviceIndex device = 0; device < cost_.device_count(); ++device)
    if (const Bytes limit = cost_.machine().device(device).memory_limit; limit != kUnlimited)
      largest = std::max(largest, limit);
  const auto floor = static_cast<double>(std::max<Bytes>(1, memory_floor(cost_, units_)));
  std::vector<TighterLimit> limits;
  if (static_cast<double>(largest) <= floor) return limits;
  const auto first =
      static_cast<int>(std::ceil(std::log(static_cast<double>(largest) / floor - 1) / std::log(kRatio)));
  for (int number = first; number < first + kMostSteps; ++number)
    limits.push_back({number, floor * (1 + std::pow(kRatio, number)) / static_cast<double>(largest)});
  return limits;
}

// Takes the placements of three algorithms and reduces their memory to each of the tighter limits
// in turn, for at most `most` of time each. Returns the first one that then fits.
std::optional<Placement> Partitioner::repaired_to_tighter(std::chrono::nanoseconds most) const {
  const std::vector<TighterLimit> tighter = tighter_limits();
  for (const Algorithm algorithm : {Algorithm::kMetis, Algorithm::kHeft, Algorithm::kParDnn}) {
    Entry start;
    start.placement = place(algorithm);
    choose_order(start);
    for (const auto& [number, share] : tighter) {
      if (left().count() == 0) return {};
      const Machine machine = with_limits(share);
      const CostModel cost(cost_.graph(), machine);
      OverflowResult repaired =
          fit_memory(cost, units_, start.placement, Effort::kQuick, std::min(most, left()), deadline());
      if (repaired.placement) return std::move(repaired.placement);
    }
  }
  return {};
}

// Runs the tasks on as many threads as the options allow. Takes their results in order, so that the
// outcome does not depend on the number of threads.
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

// Searches from the placements of METIS and ParDNN under several limits, then goes on from the best
// result. These placements may exceed the limits, but often stay short while the search makes them
// fit.
Partitioner::Entry Partitioner::improved_under_limits(const std::vector<Entry>& entries,
                                                      ImprovementCounts& counts) const {
  const Clock::time_point begin = Clock::now();
  Entry entry = better_start(entries);
  entry.candidate.algorithm = Algorithm::kImprove;
  const auto consider = [&](const Placement& placement) {
    const Simulation simulation = simulate(cost_, placement);
    if (memory_overflow(cost_.machine(), simulation) > 0 || simulation.makespan >= entry.candidate.makespan)
      return;
    entry.placement = placement, entry.candidate.makespan = simulation.makespan;
  };
  std::array<Entry, 2> whole;
  whole[0].placement = place(Algorithm::kMetis), whole[1].placement = place(Algorithm::kParDnn);
  for (Entry& start : whole) choose_order(start);
  // Without a time limit, each search from a placement gets 1 / kParts of the work of the final
  // search.
  constexpr std::int64_t kParts = 4;
  const std::vector<TighterLimit> tighter = tighter_limits();
  const auto tasks_per_thread = static_cast<std::int64_t>(tighter.size() + 3) / options_.threads + 1;
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
  for (const Entry& start : whole) add_search(1, start.placement);
  for (const auto& [number, share] : tighter) add_search(share, whole[number & 1].placement);
  if (small()) run_tasks(tasks, consider);
  tasks.clear();
  const Entry best = entry;
  for (int search = 0; search < (small() ? 2 : 1); ++search)
    tasks.push_back([&, search] {
      ImprovementLimits limits = search_limits();
      if (options_.time_limit && options_.threads == 1 && small()) limits = share_of(limits, 2 - search);
      limits.seed += search;
      if (search == 1) limits.temperature /= 10;
      return improve(cost_, units_, best.placement, limits, search == 0 ? &counts : nullptr);
    });
  run_tasks(tasks, consider);
  try_all_placements(entry);
  entry.candidate.seconds = seconds_since(begin);
  return entry;
}

}  // namespace convoy::partition
