// Improves the best candidate: finds a better start, runs the local search until its time is over,
// and tries every placement of a tiny graph.
#include <algorithm>
#include <future>
#include <memory>

#include "partition/memory/live_cut.h"
#include "partition/partitioner.h"
#include "partition/placement/baselines.h"
#include "partition/placement/exact_schedule.h"
#include "partition/placement/exhaustive.h"
#include "partition/placement/pardnn.h"

namespace convoy::partition {
namespace {

// The most nodes and edges together for which two searches run in a fixed time. On a larger graph
// one search gets a share of the time that the rest took.
constexpr std::int64_t kSmall = 20000;

std::int64_t size_of(const TaskGraph& graph) { return std::int64_t{graph.node_count()} + graph.edge_count(); }

Placement on_more_devices(Placement placement, DeviceIndex devices) {
  placement.devices = devices;
  placement.order.resize(devices);
  return placement;
}

// A machine with fewer of the interchangeable devices, and the best placement on it that needs no
// search.
class FewerDevices {
 public:
  FewerDevices(const CostModel& wide, DeviceIndex devices)
      : machine_(first(wide.machine(), devices)),
        cost_(wide.graph(), machine_),
        units_(wide.graph(), devices) {
    // Consider candidates in make_all()'s order, so that the search equals that of a smaller
    // machine.
    consider(place_by_etf(cost_, units_));
    consider(place_by_heft(cost_, units_));
    consider(place_by_metis(cost_, units_));
    consider(place_by_pardnn(cost_, units_));
    consider(place_contiguously(cost_, units_));
    consider(place_on_one_device(cost_, units_));
    for (const double transfer_weight : {0.5, 1.0, 2.0}) {
      if (transfer_weight != 1) consider(place_by_heft(cost_, units_, transfer_weight));
      consider(place_by_heft(cost_, units_, transfer_weight, false));
    }
  }

  Nanoseconds makespan() const { return makespan_; }
  const Placement& placement() const { return start_; }
  void search(ImprovementLimits limits) {
    start_ = improve(cost_, units_, start_, limits);
    makespan_ = simulate(cost_, start_, Detail::kTimes).makespan;
  }

 private:
  static Machine first(const Machine& wide, DeviceIndex devices) {
    Machine machine = Machine::uniform(devices, wide.link(0, 1), wide.device(0).memory_limit);
    machine.set_contention(wide.contention());
    return machine;
  }
  bool fits(const Placement& placement) const {
    return !machine_.limited() || memory_overflow(machine_, simulate(cost_, placement)) == 0;
  }
  // Considers the devices of a placement twice: in the order of list scheduling and in the
  // placement's own order, if it has one.
  void consider(Placement placement) {
    Placement listed{placement.devices, placement.device_of, {}};
    consider_order(std::move(listed));
    if (!placement.order.empty()) consider_order(std::move(placement));
  }
  void consider_order(Placement placement) {
    Simulation simulation = simulate(cost_, placement, Detail::kTimes);
    if (simulation.makespan >= makespan_) return;
    placement.order = std::move(simulation.order);
    if (!fits(placement)) return;
    makespan_ = simulation.makespan;
    start_ = std::move(placement);
  }

  const Machine machine_;
  const CostModel cost_;
  const Units units_;
  Placement start_;
  // Makespan of start_, the best placement so far; max() if no placement fits.
  Nanoseconds makespan_ = std::numeric_limits<Nanoseconds>::max();
};

}  // namespace

// Returns when a search that begins now must end. With one thread, two searches run one after the
// other, and each gets as much time as it would with two threads.
Clock::time_point Partitioner::search_deadline() const {
  if (options_.time_limit) return deadline();
  if (options_.move_limit != std::numeric_limits<std::int64_t>::max()) return Clock::time_point::max();
  std::chrono::duration<double> time{0.5};
  constexpr std::chrono::duration<double> kLongest{2.5};
  if (size_of(cost_.graph()) > kSmall)
    time = std::min<std::chrono::duration<double>>(0.3 * (Clock::now() - options_.began), kLongest);
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(time);
}

// Returns a better start for the search: the best candidate or a variant of HEFT. If memory limits
// bind, also tries a placement that spreads memory and some that stay far below the limits.
Partitioner::Entry Partitioner::better_start(const std::vector<Entry>& entries) const {
  constexpr std::int64_t kLarge = 300'000;
  const auto shorter = [](const Entry& a, const Entry& b) {
    return a.candidate.fits != b.candidate.fits ? a.candidate.fits
                                                : a.candidate.makespan < b.candidate.makespan;
  };
  Entry start = *std::min_element(entries.begin(), entries.end(), shorter);
  if (size_of(cost_.graph()) > kLarge) return start;
  const auto consider = [&](Placement placement) {
    if (left().count() == 0) return;
    Entry entry;
    entry.placement = std::move(placement);
    choose_order(entry);
    if (entry.candidate.makespan >= start.candidate.makespan) return;
    fit(entry, Effort::kQuick, std::chrono::milliseconds(100));
    if (entry.candidate.fits && entry.candidate.makespan < start.candidate.makespan) start = std::move(entry);
  };
  for (const double weight : {0.5, 1.0, 2.0}) {
    if (weight != 1) consider(place_by_heft(cost_, units_, weight));
    consider(place_by_heft(cost_, units_, weight, false));
  }
  if (!any_repaired(entries)) return start;
  consider(place_by_memory(cost_, units_, find_live_cut(cost_)));
  try_tighter(start);
  return start;
}

Partitioner::Entry Partitioner::searched_exactly(bool& complete) const {
  constexpr std::int64_t kSteps = 2'000'000;
  const Clock::time_point begin = Clock::now();
  const ExactSearch found =
      search_exactly(cost_, units_, std::numeric_limits<Nanoseconds>::max(), kSteps, deadline());
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
  if (!complete) entry.reason = "no placement that fits was found";
  return entry;
}

// Tries each placement of a graph that has few, in the order of list scheduling.
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

// If limits bind, searches from a placement that exceeds them, because it often stays short after
// the repair. Otherwise searches on 2, 4, … devices, if their makespan comes close. Such a search
// repeats that of a smaller machine, so that more devices give no longer schedule.
Placement Partitioner::second_search(const Entry& best, ImprovementLimits limits, bool repaired) const {
  if (repaired) {
    ++limits.seed;
    Entry whole;
    whole.placement = place(Algorithm::kParDnn);
    choose_order(whole);
    return improve(cost_, units_, whole.placement, limits);
  }
  constexpr double kClose = 1.5;
  const DeviceIndex devices = cost_.device_count();
  const double close = kClose * static_cast<double>(best.candidate.makespan);
  std::vector<std::unique_ptr<FewerDevices>> widths;
  for (DeviceIndex count = 2; count < devices && interchangeable(cost_, units_); count *= 2)
    if (auto some = std::make_unique<FewerDevices>(cost_, count);
        static_cast<double>(some->makespan()) < close)
      widths.push_back(std::move(some));
  ++limits.seed;
  const Clock::time_point last = limits.deadline;
  std::int64_t searches = 2 * std::ssize(widths) + 2;  // the last one takes as long as all others
  const auto next_limits = [&] {
    if (last == Clock::time_point::max()) return limits;
    const Clock::time_point now = Clock::now();
    limits.deadline = now + (last - now) / searches--;
    return limits;
  };
  Placement wide = improve(cost_, units_, best.placement, next_limits());
  Nanoseconds shortest = simulate(cost_, wide, Detail::kTimes).makespan;
  FewerDevices* narrow = nullptr;
  for (const auto& some : widths) {
    some->search(next_limits());
    if (some->makespan() < shortest) shortest = some->makespan(), narrow = some.get();
  }
  limits.deadline = last;
  if (narrow == nullptr) return improve(cost_, units_, wide, limits);
  narrow->search(limits);
  return on_more_devices(narrow->placement(), devices);
}

Partitioner::Entry Partitioner::improved(const std::vector<Entry>& entries, ImprovementCounts& counts) const {
  const Clock::time_point begin = Clock::now();
  const bool repaired = any_repaired(entries);
  Entry entry = better_start(entries);
  entry.candidate.algorithm = Algorithm::kImprove;
  ImprovementLimits limits;
  limits.moves = options_.move_limit;
  // Stop within a hundred-thousandth of the bound, where nothing is left to gain.
  limits.good_enough = lower_bound_ + lower_bound_ / 100'000;
  limits.seed = options_.seed;
  const Entry start = entry;
  const auto consider = [&](Placement placement) {
    const Simulation simulation =
        simulate(cost_, placement, cost_.machine().limited() ? Detail::kAll : Detail::kTimes);
    const Nanoseconds makespan = simulation.makespan;
    const bool fits = !cost_.machine().limited() || memory_overflow(cost_.machine(), simulation) == 0;
    if (fits && makespan < entry.candidate.makespan)
      entry.placement = std::move(placement), entry.candidate.makespan = makespan;
  };
  const bool second = cost_.device_count() > 1 && size_of(cost_.graph()) <= kSmall;
  limits.deadline = search_deadline();
  if (second && options_.threads > 1) {
    auto other = std::async(std::launch::async, [&] { return second_search(start, limits, repaired); });
    consider(improve(cost_, units_, start.placement, limits, &counts));
    consider(other.get());
  } else {
    if (second && options_.time_limit) limits.deadline = Clock::now() + (limits.deadline - Clock::now()) / 2;
    consider(improve(cost_, units_, start.placement, limits, &counts));
    if (second) {
      limits.deadline = search_deadline();
      consider(second_search(start, limits, repaired));
    }
  }
  try_all_placements(entry);
  entry.candidate.seconds = seconds_since(begin);
  return entry;
}

}  // namespace convoy::partition
