// The improvement of the best candidate: better starts, the local search for as long as there is time, and for tiny graphs all
// placements.
#include <algorithm>
#include <future>
#include <memory>

#include "partition/memory/live_cut.h"
#include "partition/partitioner.h"
#include "partition/placement/baselines.h"
#include "partition/placement/exhaustive.h"
#include "partition/placement/pardnn.h"

namespace convoy::partition {
namespace {

// Beyond so many nodes and edges the search gets a share of the time that the rest took, and no second search helps.
constexpr std::int64_t kSmall = 20000;

std::int64_t size_of(const TaskGraph& graph) { return std::int64_t{graph.node_count()} + graph.edge_count(); }

Placement on_more_devices(Placement placement, DeviceIndex devices) {
  placement.devices = devices;
  placement.order.resize(devices);
  return placement;
}

// Fewer devices of a machine whose devices are interchangeable, and the best placement on them without a search.
class FewerDevices {
 public:
  FewerDevices(const CostModel& wide, DeviceIndex devices)
      : machine_(first(wide.machine(), devices)),
        cost_(wide.graph(), machine_),
        units_(wide.graph(), devices) {
    for (const double transfer_weight : {0.5, 1.0, 2.0})
      consider(place_by_heft(cost_, units_, transfer_weight));
    consider(place_by_etf(cost_, units_));
    consider(place_by_pardnn(cost_, units_));
  }

  Nanoseconds makespan() const { return makespan_; }
  const Placement& placement() const { return start_; }
  void search(ImprovementLimits limits) {
    if (machine_.limited()) limits.accept = [&](const Placement& placement) { return fits(placement); };
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
  // In the list schedule's order; an algorithm's own may be shorter, and the search finds that too.
  void consider(Placement placement) {
    placement.order.clear();
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
  Nanoseconds makespan_ = std::numeric_limits<Nanoseconds>::max();  // nothing that fits
};

}  // namespace

Clock::time_point Partitioner::deadline() const {
  if (options_.move_limit != std::numeric_limits<std::int64_t>::max() && !options_.time_limit)
    return Clock::time_point::max();
  std::chrono::duration<double> time{0.5};
  constexpr std::chrono::duration<double> kLongest{2.5};
  if (options_.time_limit)
    time = *options_.time_limit;
  else if (size_of(cost_.graph()) > kSmall)
    time = std::min<std::chrono::duration<double>>(0.3 * (Clock::now() - options_.began), kLongest);
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(time);
}

// HEFT with other weights for the transfers in its ranks: milliseconds, and on some graphs some per cent.
Partitioner::Entry Partitioner::better_start(const Entry& best, bool repaired) const {
  constexpr std::int64_t kLarge = 300'000;
  Entry start = best;
  if (size_of(cost_.graph()) > kLarge) return start;
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

// What another thread does meanwhile: searches on fewer devices, where those come close, for the same time each.
// When transfers are dear more devices only make the space to search larger, and no answer should be longer for having them.
Placement Partitioner::second_search(const Entry& best, ImprovementLimits limits) const {
  constexpr double kClose = 1.25;
  const DeviceIndex devices = cost_.device_count();
  const double close = kClose * static_cast<double>(best.candidate.makespan);
  std::vector<std::unique_ptr<FewerDevices>> widths;
  for (DeviceIndex count = 2; count < devices && interchangeable(cost_, units_); count *= 2)
    if (auto some = std::make_unique<FewerDevices>(cost_, count);
        static_cast<double>(some->makespan()) < close)
      widths.push_back(std::move(some));
  ++limits.seed;
  if (widths.empty()) return improve(cost_, units_, best.placement, limits);
  const Clock::time_point last = limits.deadline;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    if (last != Clock::time_point::max()) {
      const Clock::time_point now = Clock::now();
      limits.deadline = now + (last - now) / static_cast<std::int64_t>(widths.size() - i);
    }
    widths[i]->search(limits);
  }
  const auto shorter = [](const auto& a, const auto& b) { return a->makespan() < b->makespan(); };
  return on_more_devices((*std::min_element(widths.begin(), widths.end(), shorter))->placement(), devices);
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
  std::future<Placement> second;
  if (options_.threads > 1 && cost_.device_count() > 1 && size_of(cost_.graph()) <= kSmall)
    second = std::async(std::launch::async,
                        [this, start = entry, limits] { return second_search(start, limits); });
  entry.placement = improve(cost_, units_, entry.placement, limits, &counts);
  entry.candidate.makespan = simulate(cost_, entry.placement, Detail::kTimes).makespan;
  if (second.valid()) {
    Placement other = second.get();
    const Nanoseconds makespan = simulate(cost_, other, Detail::kTimes).makespan;
    if (makespan < entry.candidate.makespan)
      entry.placement = std::move(other), entry.candidate.makespan = makespan;
  }
  try_all_placements(entry);
  entry.candidate.seconds = seconds_since(begin);
  return entry;
}

}  // namespace convoy::partition
