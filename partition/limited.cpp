// Improves a placement under memory limits. It searches under a series of limits called the ladder,
// from the tightest one (the lowest rung) up to the machine's limit. If all devices have the same
// limit, the ladder depends only on the graph. So a machine with a looser limit repeats the
// searches for a tighter one and gets no longer schedule. This does not hold for limits far above
// the memory of an unlimited schedule (kAmple), nor for searches with much less work than default.
#include <array>
#include <cmath>

#include "partition/memory/live_cut.h"
#include "partition/partitioner.h"
#include "partition/placement/baselines.h"

namespace convoy::partition {
namespace {

// The ladder's tightest limits are above memory_floor() by these fractions of it. A geometric
// series of kSeries limits begins at the last of these.
constexpr std::array kLeast = {0.0, 0.001, 0.002, 0.004, 0.006};
constexpr std::size_t kSeries = 20, kRungs = kLeast.size() - 1 + kSeries;

// On the first rung and on every second one, climb 0 or 1 fits another placement into the limit,
// with 1 / kPartsToFit of the work of a search without limits. The search after that gets
// 1 / parts_of(rung) of it. The tightest rungs are hard, so they get the whole.
constexpr std::int64_t kPartsToFit = 4;
constexpr bool fits_another(std::size_t rung, std::size_t climb) { return rung == 0 || rung % 2 == climb; }
constexpr std::int64_t parts_of(std::size_t rung) { return rung < kLeast.size() ? 1 : 6; }

// A climb takes at most the work of this many searches. Climb 1 fits more often than climb 0.
constexpr std::int64_t kClimb = [] {
  double work = 0;
  for (std::size_t rung = 0; rung < kRungs; ++rung)
    work += 1.0 / parts_of(rung) + (fits_another(rung, 1) ? 1.0 / kPartsToFit : 0);
  return static_cast<std::int64_t>(work) + 1;
}();

}  // namespace

Machine Partitioner::with_limits(double share) const {
  Machine machine = cost_.machine();
  for (DeviceIndex device = 0; device < machine.device_count(); ++device)
    if (Bytes& limit = machine.device(device).memory_limit; limit != kUnlimited)
      limit = std::llround(share * static_cast<double>(limit));
  return machine;
}

Bytes Partitioner::largest_limit() const {
  Bytes largest = 0;
  for (DeviceIndex device = 0; device < cost_.device_count(); ++device)
    if (const Bytes limit = cost_.machine().device(device).memory_limit; limit != kUnlimited)
      largest = std::max(largest, limit);
  return largest;
}

// Returns the memory limit that all devices would need, if their limits stayed in proportion. So it
// takes the largest share of its limit that any device fills, and returns that share of the largest
// limit, in bytes. With equal limits this is the largest peak.
Bytes Partitioner::largest_peak(const Simulation& simulation) const {
  double share = 0;
  for (DeviceIndex device = 0; device < cost_.device_count(); ++device)
    if (const Bytes limit = cost_.machine().device(device).memory_limit; limit != kUnlimited)
      share = std::max(share, static_cast<double>(simulation.use[device].peak_bytes) /
                                  static_cast<double>(std::max<Bytes>(1, limit)));
  return std::llround(share * static_cast<double>(largest_limit()));
}

// Places the graph on the same machine without memory limits, with the same searches as if there
// were none. So if its placement fits, limits never make a schedule longer. If time is short, takes
// a quarter of it. Otherwise the placement takes less than half of the time of all searches.
PartitionResult Partitioner::without_limits() const {
  Machine machine = cost_.machine();
  for (DeviceIndex device = 0; device < machine.device_count(); ++device)
    machine.device(device).memory_limit = kUnlimited;
  const CostModel cost(cost_.graph(), machine);
  PartitionOptions options = options_;
  if (options.time_limit)
    options.time_limit =
        std::chrono::duration<double>(left()) / (ample_time(search_limits(), kClimb) ? 2 : 4);
  return Partitioner(cost, options).run_with(Rounds::kShort);
}

// Returns the placement with its own order or with that of list scheduling, whichever gives the
// shorter schedule.
Placement Partitioner::ordered(Placement placement) const {
  Entry entry;
  entry.placement = std::move(placement);
  choose_order(entry);
  return std::move(entry.placement);
}

// Returns limits below the machine's. A repair under a tighter limit may find a placement that
// fits. The limits are memory_floor() × (1 + kRatio^number) for whole numbers, so that machines
// with different limits use the same ones. They are returned as fractions of the machine's largest
// limit.
std::vector<double> Partitioner::tighter_limits() const {
  constexpr double kRatio = 0.84;
  constexpr int kMostSteps = 7;
  const Bytes largest = largest_limit();
  const auto floor = static_cast<double>(std::max<Bytes>(1, memory_floor(cost_, units_)));
  std::vector<double> limits;
  if (static_cast<double>(largest) <= floor) return limits;
  const auto first =
      static_cast<int>(std::ceil(std::log(static_cast<double>(largest) / floor - 1) / std::log(kRatio)));
  for (int number = first; number < first + kMostSteps; ++number)
    limits.push_back(floor * (1 + std::pow(kRatio, number)) / static_cast<double>(largest));
  return limits;
}

// Takes the placements of three algorithms and tries to fit each into memory_floor() and then into
// each of the tighter limits, for at most the time `most` per attempt, or twice that for the floor.
// Returns the first placement that fits. The floor comes first because it does not depend on the
// machine's limit: if a placement for it is found, then it is found for every looser limit, too.
std::optional<Placement> Partitioner::repaired_to_tighter(std::chrono::nanoseconds most) const {
  std::vector<Placement> starts;
  for (const Algorithm algorithm : {Algorithm::kMetis, Algorithm::kHeft, Algorithm::kParDnn})
    if (starts.empty() || left().count() > 0) starts.push_back(ordered(place(algorithm)));
  const auto repaired = [&](const Placement& start, double share,
                            std::chrono::nanoseconds time) -> std::optional<Placement> {
    if (left().count() == 0) return {};
    const Machine machine = with_limits(share);
    const CostModel cost(cost_.graph(), machine);
    return fit_memory(cost, units_, start, Effort::kQuick, std::min(time, left()), deadline()).placement;
  };
  const double floor = static_cast<double>(memory_floor(cost_, units_)) /
                       static_cast<double>(std::max<Bytes>(1, largest_limit()));
  if (floor <= 1)
    for (const Placement& start : starts)
      if (std::optional<Placement> found = repaired(start, floor, 2 * most)) return found;
  for (const Placement& start : starts)
    for (const double share : tighter_limits())
      if (std::optional<Placement> found = repaired(start, share, most)) return found;
  return {};
}

// Returns the ladder: limits between memory_floor() and `peak`, the peak memory of a placement made
// without limits, as fractions of the machine's limits. Their distances from the floor form a
// geometric series.
std::vector<double> Partitioner::ladder(Bytes peak) const {
  const auto floor = static_cast<double>(std::max<Bytes>(1, memory_floor(cost_, units_)));
  const double most = static_cast<double>(peak) / floor - 1;
  std::vector<double> shares;
  // Rounded to whole bytes, the limits are identical for machines with different memory.
  const auto add = [&](double distance) {
    shares.push_back(std::round(floor * (1 + distance)) / static_cast<double>(largest_limit()));
  };
  if (most <= kLeast.back()) return shares;
  for (std::size_t rung = 0; rung + 1 < kLeast.size(); ++rung) add(kLeast[rung]);
  for (std::size_t rung = 0; rung < kSeries; ++rung)
    add(kLeast.back() * std::pow(most / kLeast.back(), static_cast<double>(rung) / kSeries));
  return shares;
}

// Searches under each limit in `shares`, from the tightest up to the machine's own limits. Each
// search starts from the result of the previous one. On the first rung and on every second one
// (number `first`, `first` + 2, …), the placement start_of(rung) is fitted into the limit, too, and
// the search starts from the better of the two. All work is divided by `divisor`. Returns the last
// placement. It is empty if even the first limit is above the machine's.
Placement Partitioner::climb(const std::vector<double>& shares, std::size_t first,
                             const std::function<const Placement&(std::size_t)>& start_of,
                             std::int64_t divisor, ImprovementCounts& counts) const {
  // If time is short, the searches of the ladder share about half of the remaining time equally.
  // There are at most two per rung. A single thread runs both climbs, one after the other.
  const std::int64_t climbs = options_.threads == 1 && first == 0 ? 2 : 1;
  const bool ample = ample_time(search_limits(), kClimb * climbs);
  std::int64_t searches = 2 * climbs * std::ssize(shares);
  Placement best;
  for (std::size_t rung = 0; rung < shares.size() && shares[rung] <= 1; ++rung) {
    const Machine machine = with_limits(shares[rung]);
    const CostModel cost(cost_.graph(), machine);
    const auto search = [&](const Placement& from, std::int64_t parts) {
      ImprovementLimits limits = search_limits();
      if (!ample) limits.deadline = share_of_time(limits.deadline, 2 * searches--);
      if (limits.work != std::numeric_limits<std::int64_t>::max()) limits.work /= parts * divisor;
      limits.fit_at_any_cost = true;
      ImprovementCounts its;
      Placement found = improve(cost, units_, from, limits, &its);
      counts.tried += its.tried, counts.accepted += its.accepted;
      return found;
    };
    const auto score = [&](const Placement& placement) {
      const Simulation simulation = simulate(cost, placement);
      return std::pair(memory_overflow(machine, simulation), simulation.makespan);
    };
    if (fits_another(rung, first)) {
      Placement other = search(start_of(rung), kPartsToFit);
      if (best.device_of.empty() || score(other) < score(best)) best = std::move(other);
    }
    best = search(best, parts_of(rung));
  }
  return best;
}

// Climbs the ladder twice (climb()) and passes both results to `take`. The first climb fits METIS's
// placement into the limits. The second fits ParDNN's placement into the tighter limits, and the
// placement of `open`, a search without limits, into the looser ones.
void Partitioner::climb_twice(const PartitionResult& open, const std::function<void(const Placement&)>& take,
                              ImprovementCounts& counts) const {
  const std::vector<double> shares = ladder(largest_peak(open.simulation));
  if (shares.empty()) return;
  const Placement by_metis = ordered(place(Algorithm::kMetis)),
                  by_pardnn = ordered(place(Algorithm::kParDnn));
  const auto metis = [&](std::size_t) -> const Placement& { return by_metis; };
  // The placement made without limits is good under loose limits, but hard to fit into tight ones.
  const auto other = [&](std::size_t rung) -> const Placement& {
    return 2 * rung < shares.size() ? by_pardnn : *open.placement;
  };
  // If climbs on half of the devices may follow (on_half()), these get less work. This does not
  // depend on the machine's limits, so a looser one still repeats what a tighter one finds.
  constexpr std::int64_t kHalves = 3;
  const std::int64_t divisor = half_may_be_shorter(open.simulation.makespan) ? kHalves : 1;
  std::array<ImprovementCounts, 2> its;
  run_tasks({[&] { return climb(shares, 0, metis, divisor, its[0]); },
             [&] { return climb(shares, 1, other, divisor, its[1]); }},
            take);
  for (const ImprovementCounts& some : its) counts.tried += some.tried, counts.accepted += some.accepted;
}

// Keeps the placement of a search without limits if it fits, and climbs the ladder. Searches under
// the machine's own limits if this has found no placement. Then takes the placement for half of the
// devices if it is shorter, and continues in rounds until the deadline if there is a time limit.
Partitioner::Entry Partitioner::improved_under_limits(const std::vector<Entry>& entries,
                                                      ImprovementCounts& counts) const {
  const Clock::time_point begin = Clock::now();
  Entry entry = better_start(entries);
  entry.candidate.algorithm = Algorithm::kImprove;
  bool found = false;
  const auto consider = [&](const Placement& placement) {
    const Simulation simulation = simulate(cost_, placement);
    if (memory_overflow(cost_.machine(), simulation) > 0) return;
    found = true;
    if (simulation.makespan >= entry.candidate.makespan) return;
    entry.placement = placement, entry.candidate.makespan = simulation.makespan;
  };
  if (small()) {
    const PartitionResult open = without_limits();
    consider(*open.placement);
    counts = open.improvement;
    if (at_bound(entry.candidate)) {
      entry.candidate.seconds = seconds_since(begin);
      return entry;
    }
    // Skip the ladder if the limits are far above the peak of a schedule without limits: they
    // hardly matter then.
    constexpr double kAmple = 2;
    const auto peak = static_cast<double>(largest_peak(open.simulation));
    if (!found || static_cast<double>(largest_limit()) <= kAmple * peak) climb_twice(open, consider, counts);
  }
  if (!found) search_own_limits(entry, 0, consider, counts);
  if (const std::optional<Placement> half = on_half(entry.candidate.makespan, counts)) consider(*half);
  try_all_placements(entry);
  improve_until_deadline(entry.candidate, 1,
                         [&](int round) { search_own_limits(entry, round, consider, counts); });
  entry.candidate.seconds = seconds_since(begin);
  return entry;
}

// Searches under the machine's own limits from several placements, and then again from the best
// one. A later round has more work (search_limits()).
void Partitioner::search_own_limits(const Entry& best, int round,
                                    const std::function<void(const Placement&)>& take,
                                    ImprovementCounts& counts) const {
  std::vector<Placement> starts;
  if (small()) {
    starts.push_back(best.placement);
    for (const Algorithm algorithm : {Algorithm::kMetis, Algorithm::kParDnn})
      starts.push_back(ordered(place(algorithm)));
  }
  std::vector<std::function<Placement()>> tasks;
  for (const Placement& start : starts)
    tasks.push_back([&] {
      constexpr std::int64_t kParts = 4;
      ImprovementLimits limits = share_of(search_limits(round), kParts);
      limits.fit_at_any_cost = true;
      return improve(cost_, units_, start, limits);
    });
  run_tasks(tasks, take);
  tasks.clear();
  ImprovementCounts its;
  const Placement start = best.placement;
  for (int search = 0; search < (small() ? 2 : 1); ++search)
    tasks.push_back([&, search] {
      ImprovementLimits limits = search_limits(round);
      if (options_.threads == 1 && small() && !ample_time(limits, 2))
        limits.deadline = share_of_time(limits.deadline, 2 - search);
      limits.seed += search;
      if (search == 1) limits.temperature /= 10;
      return improve(cost_, units_, start, limits, search == 0 ? &its : nullptr);
    });
  run_tasks(tasks, take);
  counts.tried += its.tried, counts.accepted += its.accepted;
}

}  // namespace convoy::partition
