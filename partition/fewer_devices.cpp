// Searches on fewer devices than the machine has, so that more devices do not give a longer
// schedule.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "partition/partitioner.h"
#include "partition/placement/baselines.h"
#include "partition/placement/pardnn.h"

namespace convoy::partition {
namespace {

Placement on_devices(DeviceIndex devices, Placement placement) {
  placement.devices = devices;
  placement.order.resize(devices);
  return placement;
}

Machine first_devices(const Machine& wide, DeviceIndex devices) {
  Machine machine = Machine::uniform(devices, wide.link(0, 1), wide.device(0).memory_limit);
  machine.set_contention(wide.contention());
  return machine;
}

// Returns the numbers of devices on which a machine with `devices` searches, largest first: all of
// them, of the larger numbers …, 32, 24, 16, 12, and each number from 8 to `least`.
std::vector<DeviceIndex> widths_of(DeviceIndex devices, DeviceIndex least) {
  constexpr DeviceIndex kEachUpTo = 8;
  std::vector<DeviceIndex> widths;
  for (DeviceIndex width = 2; width < devices;) {
    if (width >= least) widths.push_back(width);
    const auto power = static_cast<DeviceIndex>(std::bit_floor(static_cast<std::uint32_t>(width)));
    width += width < kEachUpTo ? 1 : power / 2;
  }
  widths.push_back(devices);
  std::reverse(widths.begin(), widths.end());
  return widths;
}

// The first devices of a machine whose devices are all alike, and the shortest placement found for
// them. The placement is the best of the simple algorithms at first, and search() improves it.
class FewerDevices {
 public:
  FewerDevices(const CostModel& wide, DeviceIndex devices)
      : machine_(first_devices(wide.machine(), devices)),
        cost_(wide.graph(), machine_),
        units_(wide.graph(), devices) {
    // Try the algorithms in the order of Partitioner::make_all(). The first of several equally
    // short placements is kept. So the result equals that of a machine that has only these devices.
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
  bool fits(const Placement& placement) const {
    return !machine_.limited() || memory_overflow(machine_, simulate(cost_, placement)) == 0;
  }
  // Tries a placement in the order of list scheduling. If the placement has an order of its own,
  // tries that, too. The shortest schedule so far is kept.
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
  // The makespan (schedule length) of start_, or max() if no placement fits so far.
  Nanoseconds makespan_ = std::numeric_limits<Nanoseconds>::max();
};

}  // namespace

// Returns whether on_half() searches, too. Single searches differ by several percent on graphs of
// 100 nodes. On larger graphs second_search() is enough, and on_half() would take too long.
bool Partitioner::halves() const {
  constexpr std::int64_t kMostNodesAndEdges = 1000;
  return size() <= kMostNodesAndEdges && cost_.device_count() > 2 && rounds_ != Rounds::kOneSearch &&
         interchangeable(cost_, units_);
}

// Returns whether the lower bound allows a schedule of less than `makespan` on half of the devices.
bool Partitioner::half_may_be_shorter(Nanoseconds makespan) const {
  if (!halves()) return false;
  const Machine machine = first_devices(cost_.machine(), (cost_.device_count() + 1) / 2);
  return makespan_lower_bound(CostModel(cost_.graph(), machine)) < makespan;
}

// Returns the placement that the partitioner finds for half of the devices, rounded up, if its
// schedule may be shorter than `makespan`. So all devices never give a longer schedule than half of
// them. Each device keeps its memory limit. Returns nothing if no placement is found.
std::optional<Placement> Partitioner::on_half(Nanoseconds makespan, ImprovementCounts& counts) const {
  if (!half_may_be_shorter(makespan) || left().count() == 0) return {};
  const Machine machine = first_devices(cost_.machine(), (cost_.device_count() + 1) / 2);
  const CostModel cost(cost_.graph(), machine);
  if (memory_floor(cost, units_) > machine.device(0).memory_limit) return {};
  PartitionOptions options = options_;
  if (options.time_limit) options.time_limit = left();
  PartitionResult result = Partitioner(cost, options).run_with(Rounds::kShort);
  counts.tried += result.improvement.tried, counts.accepted += result.improvement.accepted;
  if (!result.placement) return {};
  return on_devices(cost_.device_count(), *std::move(result.placement));
}

// Searches on all devices, and also on the first 2, 4, … devices if the schedule on them is not
// much longer. The searches on fewer devices are those of a machine that has only these devices, so
// more devices rarely give a longer schedule. Then continues from the shortest result, with half of
// all work, and returns the final placement.
//
// If on_half() follows, this searches on all devices only. Under contention it is used only if
// devices differ, because search_each_width() is used otherwise.
Placement Partitioner::second_search(const Entry& best, ImprovementLimits limits) const {
  constexpr double kClose = 1.5;
  const DeviceIndex devices = cost_.device_count();
  const double close = kClose * static_cast<double>(best.candidate.makespan);
  std::vector<std::unique_ptr<FewerDevices>> widths;
  for (DeviceIndex count = 2; count < devices && !halves() && interchangeable(cost_, units_); count *= 2)
    if (auto some = std::make_unique<FewerDevices>(cost_, count);
        static_cast<double>(some->makespan()) < close)
      widths.push_back(std::move(some));
  ++limits.seed;
  // With a low temperature these searches stay near their start. The first search, in improved(),
  // explores more widely. Under contention both explore.
  limits.temperature *= cost_.machine().contention() ? 1.5 : 0.1;
  // Divide the work into `all` equal parts. Each search before the last one gets one part. Together
  // these are half of the work. The last search gets the other half. Divide the remaining time anew
  // before each search, because a search may end early.
  const std::int64_t all = 2 * std::ssize(widths) + 2;
  auto next_limits = [&, left = all]() mutable {
    ImprovementLimits some = share_of(limits, left--);
    some.work = share_of(limits, all).work;
    return some;
  };
  Placement wide = improve(cost_, units_, best.placement, next_limits());
  Nanoseconds shortest = makespan_of(wide);
  FewerDevices* narrow = nullptr;
  for (const auto& some : widths) {
    some->search(next_limits());
    if (some->makespan() < shortest) shortest = some->makespan(), narrow = some.get();
  }
  limits.work = share_of(limits, 2).work;
  if (narrow == nullptr) return improve(cost_, units_, wide, limits);
  narrow->search(limits);
  return on_devices(devices, narrow->placement());
}

// Searches once from the start, and then briefly near to the result.
Placement Partitioner::search_once(const Placement& start, ImprovementLimits limits,
                                   ImprovementCounts& counts) const {
  constexpr std::int64_t kShort = 8;
  const Placement found = improve(cost_, units_, start, limits, &counts);
  limits = short_part(limits, kShort);
  limits.seed += 2;
  limits.temperature /= 2;
  limits.patience = ImprovementLimits().patience;
  return improve(cost_, units_, found, limits);
}

// Does search_once() on all devices, and on fewer devices as a machine with only these does it, and
// returns the shortest schedule. So without a time limit, a machine whose number of devices is one
// of widths_of() gives no longer schedule than one with a smaller number of these. Leaves out
// numbers whose lower bound exceeds the shortest schedule so far.
Placement Partitioner::search_each_width(const Placement& start, const ImprovementLimits& limits,
                                         ImprovementCounts& counts) const {
  struct Width {
    Machine machine;
    Nanoseconds bound = 0;
    ImprovementCounts counts = {};
  };
  const Nanoseconds at_start = makespan_of(start);
  std::vector<Width> widths;
  for (const DeviceIndex count : widths_of(cost_.device_count(), highest_pin(units_) + 1)) {
    Width width{first_devices(cost_.machine(), count)};
    width.bound = makespan_lower_bound(CostModel(cost_.graph(), width.machine));
    if (widths.empty() || width.bound <= at_start) widths.push_back(std::move(width));
  }
  std::atomic<Nanoseconds> shortest{at_start};
  const auto search = [&](std::size_t i) -> Placement {
    Width& width = widths[i];
    const auto rounds = std::ssize(widths) - static_cast<std::int64_t>(i) + options_.threads - 1;
    ImprovementLimits own = limits;
    if (!ample_time(limits, rounds / options_.threads))
      own.deadline = share_of_time(limits.deadline, rounds / options_.threads);
    if (i == 0) return search_once(start, own, width.counts);
    if (left().count() == 0 || width.bound > shortest) return {};
    PartitionOptions options = options_;
    options.threads = 1;
    if (options.time_limit) options.time_limit = own.deadline - Clock::now();
    const CostModel cost(cost_.graph(), width.machine);
    PartitionResult result = Partitioner(cost, options).run_with(Rounds::kOneSearch);
    width.counts = result.improvement;
    if (!result.placement) return {};
    return on_devices(cost_.device_count(), *std::move(result.placement));
  };
  std::vector<std::function<Placement()>> tasks;
  for (std::size_t i = 0; i < widths.size(); ++i)
    tasks.push_back([&, i] {
      Placement placement = search(i);
      if (placement.device_of.empty()) return placement;
      const Nanoseconds makespan = makespan_of(placement);
      Nanoseconds least = shortest;
      while (makespan < least && !shortest.compare_exchange_weak(least, makespan)) {
      }
      return placement;
    });
  Placement best = start;
  Nanoseconds makespan = at_start;
  run_tasks(tasks, [&](const Placement& placement) {
    if (const Nanoseconds its = makespan_of(placement); its < makespan) best = placement, makespan = its;
  });
  // Whether a number that the bound rules out was searched depends on the threads. Count only those
  // that are searched in any case.
  for (const Width& width : widths)
    if (width.bound <= makespan || &width == &widths.front())
      counts.tried += width.counts.tried, counts.accepted += width.counts.accepted;
  return best;
}

}  // namespace convoy::partition
