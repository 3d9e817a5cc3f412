// Improves the best candidate. Chooses the placement to start from, and runs the local search until
// its limits are reached. For a tiny graph it then tries every placement.
#include <algorithm>
#include <array>
#include <future>

#include "partition/memory/live_cut.h"
#include "partition/partitioner.h"
#include "partition/placement/baselines.h"
#include "partition/placement/exact_schedule.h"
#include "partition/placement/exhaustive.h"
#include "partition/run_on_threads.h"

namespace convoy::partition {

// Returns the limits of a local search that begins now. They limit its work or its number of moves,
// so that results are reproducible as long as the deadline is far away. Round 0 is the first
// search. The next kShortRounds rounds have half its work, so that the best placement is chosen
// more often. Each later round has twice the work of the one before. Under contention all rounds
// double it. All have other seeds.
ImprovementLimits Partitioner::search_limits(int round) const {
  ImprovementLimits limits;
  limits.moves = options_.move_limit;
  limits.deadline = deadline();
  // Stop when the makespan is within 1/100,000 of the lower bound, because little can be gained
  // then.
  limits.good_enough = lower_bound_ + lower_bound_ / 100'000;
  constexpr std::uint64_t kSeedsPerRound = 2;
  limits.seed = options_.seed + kSeedsPerRound * static_cast<std::uint64_t>(round);
  // Under contention (machine.h), one move delays many transfers, so schedules become much longer
  // before they become shorter. A higher temperature (improvement.h) makes the search accept them.
  if (cost_.machine().contention()) limits.temperature = 0.1;
  if (options_.move_limit != std::numeric_limits<std::int64_t>::max()) return limits;
  constexpr std::int64_t kWorkPerSize = 250, kMostWork = 1'200'000'000;
  limits.work = small() ? options_.search_work : std::min(kWorkPerSize * size(), kMostWork);
  constexpr int kMostDoublings = 30;
  const int doublings = cost_.machine().contention() ? round + 1 : round - kShortRounds;
  if (round > 0) limits.work = limits.work / 2 << std::clamp(doublings, 0, kMostDoublings);
  return limits;
}

// Returns the placement from which the search starts: the best candidate or a variant of HEFT. If
// memory limits matter, it may also be a placement that spreads memory over the devices.
Partitioner::Entry Partitioner::better_start(const std::vector<Entry>& entries) const {
  constexpr std::int64_t kLarge = 300'000;
  const auto shorter = [](const Entry& a, const Entry& b) {
    return a.candidate.fits != b.candidate.fits ? a.candidate.fits
                                                : a.candidate.makespan < b.candidate.makespan;
  };
  Entry start = *std::min_element(entries.begin(), entries.end(), shorter);
  if (size() > kLarge) return start;
  const auto consider = [&](Placement placement) {
    if (left().count() == 0) return;
    Entry entry;
    entry.placement = std::move(placement);
    choose_order(entry);
    if (entry.candidate.makespan >= start.candidate.makespan) return;
    fit(entry, Effort::kQuick, std::chrono::milliseconds(100));
    if (entry.candidate.fits && entry.candidate.makespan < start.candidate.makespan) start = std::move(entry);
  };
  if (any_repaired(entries)) {
    consider(place_by_memory(cost_, units_, find_live_cut(cost_)));
    return start;
  }
  for (const double weight : {0.5, 1.0, 2.0}) {
    if (weight != 1) consider(place_by_heft(cost_, units_, weight));
    consider(place_by_heft(cost_, units_, weight, false));
  }
  return start;
}

// Looks through all schedules that are not longer than the best candidate. `complete` becomes true
// if it has examined all of them.
Partitioner::Entry Partitioner::searched_exactly(const Candidate& best, bool& complete) const {
  constexpr std::int64_t kSteps = 2'000'000;
  const Clock::time_point begin = Clock::now();
  const Nanoseconds shorter_than = best.fits ? best.makespan + 1 : std::numeric_limits<Nanoseconds>::max();
  const ExactSearchResult found = search_exactly(cost_, units_, shorter_than, kSteps, deadline());
  complete = found.complete;
  Entry entry;
  entry.candidate.algorithm = Algorithm::kImprove;
  entry.candidate.fits = found.placement.has_value();
  entry.candidate.seconds = seconds_since(begin);
  if (found.placement) {
    entry.placement = *found.placement;
    entry.candidate.makespan = simulate(cost_, entry.placement, Detail::kTimes).makespan;
    return entry;
  }
  entry.overflow = kUnlimited;
  entry.proven = complete;
  entry.reason = live_certificate(cost_, find_live_cut(cost_))
                     .value_or("no placement fits in any order: all of them were tried");
  if (!complete) entry.reason = "not all orders were tried";
  return entry;
}

// Tries all placements of a graph if there are few, each in the order of list scheduling.
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

// Returns the limits of a local search that ignores memory. Under contention a move takes ten times
// the work, because it delays many transfers. So the search may then do kContention times the usual
// work. It is colder than one with memory limits, but on large graphs it returns later to the best
// placement, because many moves must follow the first one before a schedule becomes shorter.
ImprovementLimits Partitioner::limits_without_memory(int round) const {
  constexpr std::int64_t kContention = 3;
  ImprovementLimits limits = search_limits(round);
  if (!cost_.machine().contention() || !small()) return limits;
  if (limits.work < std::numeric_limits<std::int64_t>::max()) limits.work *= kContention;
  limits.temperature = 0.02;
  const std::int64_t nodes = cost_.graph().node_count();
  limits.patience = std::max(limits.patience, nodes * nodes / 20);
  return limits;
}

// Returns whether the time until the deadline is enough for `searches` searches, one after the
// other, even if a unit of work (work.h) takes kMostPerUnit nanoseconds instead of one.
bool Partitioner::ample_time(const ImprovementLimits& limits, std::int64_t searches) {
  constexpr std::int64_t kMostPerUnit = 2;
  return limits.deadline == Clock::time_point::max() ||
         (limits.deadline - Clock::now()) / (kMostPerUnit * searches) > std::chrono::nanoseconds(limits.work);
}

// Returns when the first of `parts` searches must end that share the remaining time equally. Adds a
// quarter, so that a short delay does not end a search for which the time is enough.
Clock::time_point Partitioner::share_of_time(Clock::time_point deadline, std::int64_t parts) {
  if (deadline == Clock::time_point::max()) return deadline;
  return std::min(deadline, Clock::now() + 5 * (deadline - Clock::now()) / (4 * parts));
}

// Returns the limits for one of `parts` searches that share work and remaining time equally. If
// there is ample time for all the work, its deadline stays as it is.
ImprovementLimits Partitioner::share_of(ImprovementLimits limits, std::int64_t parts) {
  if (!ample_time(limits, 1)) limits.deadline = share_of_time(limits.deadline, parts);
  if (limits.work != std::numeric_limits<std::int64_t>::max()) limits.work /= parts;
  return limits;
}

// Does the same for a short search, which also gets only a part of the moves.
ImprovementLimits Partitioner::short_part(ImprovementLimits limits, std::int64_t parts) {
  limits = share_of(limits, parts);
  if (limits.moves != std::numeric_limits<std::int64_t>::max()) limits.moves /= parts;
  return limits;
}

// With a time limit, runs search(first), search(first + 1), … until the deadline or until `best` is
// nearly as short as the lower bound. The work of each round is twice that of the one before.
void Partitioner::improve_until_deadline(const Candidate& best, int first,
                                         const std::function<void(int)>& search) const {
  const bool movable = cost_.device_count() > 1 && cost_.graph().node_count() > 0;
  const bool by_moves = options_.move_limit != std::numeric_limits<std::int64_t>::max();
  if (rounds_ != Rounds::kUntilDeadline || !movable || by_moves || deadline() == Clock::time_point::max())
    return;
  for (int round = first; left().count() > 0 && best.makespan > search_limits().good_enough; ++round)
    search(round);
}

// Runs the tasks on as many threads as the options allow. Passes the results to `take` in the order
// of the tasks, so that the outcome does not depend on the number of threads.
void Partitioner::run_tasks(const std::vector<std::function<Placement()>>& tasks,
                            const std::function<void(const Placement&)>& take) const {
  std::vector<Placement> results(tasks.size());
  run_on_threads(tasks.size(), options_.threads, [&](std::size_t i) { results[i] = tasks[i](); });
  for (const Placement& placement : results)
    if (!placement.device_of.empty()) take(placement);
}

// Searches twice: once widely, and once near to the best placement so far. The wide search begins
// at the best placement, too, but under contention at `first`, the start of the first search: there
// one long search is better than several short ones. The search near to the best placement has a
// low temperature. Under contention it is hot instead, but soon returns to that placement.
void Partitioner::search_again(const Placement& first, Entry& best, int round,
                               ImprovementCounts& counts) const {
  const bool contention = cost_.machine().contention();
  const Placement best_so_far = best.placement;
  std::array<ImprovementCounts, 2> its;
  std::vector<std::function<Placement()>> tasks;
  for (int search = 0; search < 2; ++search)
    tasks.push_back([&, search] {
      ImprovementLimits limits = limits_without_memory(round);
      if (options_.threads == 1 && search == 0 && !ample_time(limits, 2))
        limits.deadline = share_of_time(limits.deadline, 2);
      limits.seed += search;
      if (search == 1) {
        limits.temperature *= contention ? 5 : 0.01;
        limits.patience = ImprovementLimits().patience;
      }
      return improve(cost_, units_, contention && search == 0 ? first : best_so_far, limits, &its[search]);
    });
  run_tasks(tasks, [&](const Placement& placement) {
    const Nanoseconds makespan = makespan_of(placement);
    if (makespan < best.candidate.makespan) best.placement = placement, best.candidate.makespan = makespan;
  });
  for (const ImprovementCounts& some : its) counts.tried += some.tried, counts.accepted += some.accepted;
}

Partitioner::Entry Partitioner::improved(const std::vector<Entry>& entries, ImprovementCounts& counts) const {
  const Clock::time_point begin = Clock::now();
  Entry entry = better_start(entries);
  entry.candidate.algorithm = Algorithm::kImprove;
  const Entry start = entry;
  const auto consider = [&](Placement placement) {
    const Nanoseconds makespan = makespan_of(placement);
    if (makespan < entry.candidate.makespan)
      entry.placement = std::move(placement), entry.candidate.makespan = makespan;
  };
  const bool second = cost_.device_count() > 1 && small();
  const ImprovementLimits limits = limits_without_memory();
  const bool each_width = second && cost_.machine().contention() && alike_devices(cost_);
  if (rounds_ == Rounds::kOneSearch || each_width) {
    consider(rounds_ == Rounds::kOneSearch ? search_once(start.placement, limits, counts)
                                           : search_each_width(start.placement, limits, counts));
  } else if (second && options_.threads > 1) {
    auto other = std::async(std::launch::async, [&] { return second_search(start, limits); });
    consider(improve(cost_, units_, start.placement, limits, &counts));
    consider(other.get());
  } else {
    ImprovementLimits first = limits;
    if (second && !ample_time(limits, 2)) first.deadline = share_of_time(limits.deadline, 2);
    consider(improve(cost_, units_, start.placement, first, &counts));
    if (second) consider(second_search(start, limits));
  }
  if (!each_width)
    if (const std::optional<Placement> half = on_half(entry.candidate.makespan, counts)) consider(*half);
  try_all_placements(entry);
  // More rounds for graphs with fewer nodes and edges than this. Under contention the first
  // searches alone get the work of all rounds.
  constexpr std::int64_t kManyRounds = 10'000;
  int round = 1;
  if (rounds_ != Rounds::kOneSearch && second && size() < kManyRounds && !cost_.machine().contention())
    for (; round <= kShortRounds && left().count() > 0; ++round)
      if (entry.candidate.makespan > limits.good_enough) search_again(start.placement, entry, round, counts);
  improve_until_deadline(entry.candidate, round,
                         [&](int next) { search_again(start.placement, entry, next, counts); });
  entry.candidate.seconds = seconds_since(begin);
  return entry;
}

}  // namespace convoy::partition
