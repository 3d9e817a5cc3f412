// Repairs placements that exceed memory limits (overflow.h) by a greedy algorithm and a search. For
// small graphs it tries all placements.
#include "partition/memory/overflow.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>

#include "partition/placement/exhaustive.h"
#include "partition/random.h"

namespace convoy::partition {
namespace {

std::chrono::nanoseconds worked() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

// A placement that is being repaired, and its simulation.
struct Attempt {
  Placement placement;
  Simulation simulation;
  Bytes overflow = kUnlimited;
};

class Fitter {
 public:
  Fitter(const CostModel& cost, const Units& units, std::chrono::nanoseconds time,
         std::chrono::steady_clock::time_point deadline)
      : cost_(cost),
        graph_(cost.graph()),
        machine_(cost.machine()),
        units_(units),
        last_(worked() + time),
        deadline_(deadline),
        depth_first_(depth_first_priorities()),
        moved_(units.count(), 0),
        random_(1) {}

  OverflowResult run(const Placement& placement, Effort effort);

 private:
  struct Eviction {
    std::int32_t unit;
    Bytes relief;
    double cost;
  };

  bool out_of_time() const { return worked() >= last_ || std::chrono::steady_clock::now() >= deadline_; }
  Attempt judge(const Placement& placement) const;
  Attempt judge_devices(std::vector<DeviceIndex> device_of) const;
  std::vector<Nanoseconds> depth_first_priorities() const;
  bool greedy_round(Attempt& best);
  std::vector<Eviction> evictions(const Attempt& attempt, DeviceIndex device, Nanoseconds time) const;
  std::vector<Eviction> worst_evictions(const Attempt& attempt) const;
  static Nanoseconds peak_time(const Attempt& attempt, DeviceIndex device);
  DeviceIndex room_for(const Attempt& attempt, std::int32_t unit, const std::vector<Bytes>& added) const;
  double cut_time(std::int32_t unit, const std::vector<DeviceIndex>& device_of) const;
  void search(Attempt& best, std::int64_t most_moves);
  bool exhaust(Attempt& best);
  std::string describe(const Attempt& attempt) const;
  Bytes limit(DeviceIndex device) const { return machine_.device(device).memory_limit; }
  Bytes unit_resident(std::int32_t unit) const {
    Bytes sum = 0;
    for (const NodeIndex node : units_.nodes(unit)) sum += graph_.resident_bytes(node);
    return sum;
  }

  const CostModel& cost_;
  const TaskGraph& graph_;
  const Machine& machine_;
  const Units& units_;
  const std::chrono::nanoseconds last_;  // value of worked() at which the repair must stop
  const std::chrono::steady_clock::time_point deadline_;
  const std::vector<Nanoseconds> depth_first_;
  // For each unit (units.h), how often it was moved away from its device. The count raises the cost
  // of moving it again.
  std::vector<int> moved_;
  Random random_;
};

Attempt Fitter::judge(const Placement& placement) const {
  Attempt attempt{placement, simulate(cost_, placement), 0};
  attempt.placement.order = attempt.simulation.order;
  attempt.overflow = memory_overflow(machine_, attempt.simulation);
  return attempt;
}

// Returns priorities for depth-first order. In this order a node soon follows the last of its
// producers, so few tensors are live at the same time.
std::vector<Nanoseconds> Fitter::depth_first_priorities() const {
  std::vector<Nanoseconds> priority(graph_.node_count(), 0);
  std::vector<EdgeIndex> waiting(graph_.node_count());
  std::vector<NodeIndex> stack;
  for (NodeIndex node = graph_.node_count() - 1; node >= 0; --node)
    if ((waiting[node] = graph_.in_degree(node)) == 0) stack.push_back(node);
  for (Nanoseconds rank = graph_.node_count(); !stack.empty(); --rank) {
    const NodeIndex node = stack.back();
    stack.pop_back();
    priority[node] = rank;
    for (const NodeIndex next : graph_.successors(node))
      if (--waiting[next] == 0) stack.push_back(next);
  }
  return priority;
}

// Tries these devices with the order of list scheduling by bottom levels (simulator.h). If this
// order does not fit, tries the depth-first order, in which fewer tensors are live. Returns the
// attempt that exceeds the limits less.
Attempt Fitter::judge_devices(std::vector<DeviceIndex> device_of) const {
  Attempt attempt = judge({cost_.device_count(), std::move(device_of), {}});
  if (attempt.overflow == 0) return attempt;
  Simulation deep = simulate_list(cost_, attempt.placement.device_of, depth_first_, Detail::kAll);
  const Bytes overflow = memory_overflow(machine_, deep);
  if (overflow >= attempt.overflow) return attempt;
  attempt.placement.order = deep.order;
  attempt.simulation = std::move(deep);
  attempt.overflow = overflow;
  return attempt;
}

double Fitter::cut_time(std::int32_t unit, const std::vector<DeviceIndex>& device_of) const {
  double sum = 0;
  for (const NodeIndex node : units_.nodes(unit)) {
    const DeviceIndex home = device_of[node];
    for (const EdgeIndex edge : graph_.in_edges(node))
      if (device_of[graph_.source(edge)] == home) sum += static_cast<double>(cost_.transfer_time(edge));
    for (EdgeIndex edge = graph_.out_begin(node); edge < graph_.out_end(node); ++edge)
      if (device_of[graph_.target(edge)] == home) sum += static_cast<double>(cost_.transfer_time(edge));
  }
  return sum + 1;
}

// Returns the units whose removal would free bytes on the device at that time, cheapest first. A
// unit frees its parameters and the tensors that no other unit on this device needs.
std::vector<Fitter::Eviction> Fitter::evictions(const Attempt& attempt, DeviceIndex device,
                                                Nanoseconds time) const {
  const std::vector<DeviceIndex>& device_of = attempt.placement.device_of;
  const Simulation& simulation = attempt.simulation;
  std::vector<Bytes> relief(units_.count(), 0);
  const auto holder = [&](NodeIndex producer) {
    std::int32_t only =
        device_of[producer] == device && simulation.finish[producer] > time ? units_.of(producer) : kNone;
    for (const NodeIndex next : graph_.successors(producer)) {
      if (device_of[next] != device || simulation.finish[next] <= time) continue;
      if (only != kNone && only != units_.of(next)) return kNone;
      only = units_.of(next);
    }
    return only == kNone && device_of[producer] == device ? units_.of(producer) : only;
  };
  for (NodeIndex node = 0; node < graph_.node_count(); ++node) {
    if (device_of[node] == device) relief[units_.of(node)] += graph_.resident_bytes(node);
    const bool begun =
        device_of[node] == device ? simulation.start[node] <= time : simulation.finish[node] <= time;
    if (!begun) continue;
    if (const std::int32_t unit = holder(node); unit != kNone) relief[unit] += graph_.output_bytes(node);
  }
  std::vector<Eviction> result;
  for (std::int32_t unit = 0; unit < units_.count(); ++unit)
    if (relief[unit] > 0 && units_.pin(unit) == kNone && device_of[units_.nodes(unit)[0]] == device)
      result.push_back({unit, relief[unit],
                        cut_time(unit, device_of) * (1 + moved_[unit]) / static_cast<double>(relief[unit])});
  std::sort(result.begin(), result.end(), [](const Eviction& a, const Eviction& b) {
    return a.cost != b.cost ? a.cost < b.cost : a.unit < b.unit;
  });
  return result;
}

// Returns the device that has the most memory left after it takes the unit. Returns kNone if the
// unit fits on no device.
DeviceIndex Fitter::room_for(const Attempt& attempt, std::int32_t unit,
                             const std::vector<Bytes>& added) const {
  const DeviceIndex home = attempt.placement.device_of[units_.nodes(unit)[0]];
  Bytes need = unit_resident(unit), most = -1;
  for (const NodeIndex node : units_.nodes(unit)) need += graph_.output_bytes(node);
  DeviceIndex best = kNone;
  for (DeviceIndex device = 0; device < machine_.device_count(); ++device) {
    if (device == home) continue;
    const Bytes room = limit(device) - attempt.simulation.use[device].peak_bytes - added[device] - need;
    if (room > most) most = room, best = device;
  }
  return best;
}

// Moves units away from each device above its limit until, by estimate, the device is within it. If
// this lowers the total excess over all limits, keeps the moves and returns true.
bool Fitter::greedy_round(Attempt& best) {
  std::vector<DeviceIndex> device_of = best.placement.device_of;
  std::vector<Bytes> added(machine_.device_count(), 0);
  bool any = false;
  for (DeviceIndex device = 0; device < machine_.device_count(); ++device) {
    Bytes excess = best.simulation.use[device].peak_bytes - limit(device);
    if (excess <= 0) continue;
    for (const Eviction& eviction : evictions(best, device, peak_time(best, device))) {
      if (excess <= 0) break;
      const DeviceIndex target = room_for(best, eviction.unit, added);
      if (target == kNone) continue;
      for (const NodeIndex node : units_.nodes(eviction.unit)) {
        device_of[node] = target;
        added[target] += graph_.resident_bytes(node) + graph_.output_bytes(node);
      }
      ++moved_[eviction.unit];
      excess -= eviction.relief;
      any = true;
    }
  }
  if (!any) return false;
  Attempt next = judge_devices(std::move(device_of));
  if (next.overflow >= best.overflow) return false;
  best = std::move(next);
  return true;
}

// Tries random moves until nothing exceeds a limit or the time is up, and rejects those that raise
// the excess. In half of the tries, the moved units hold memory on the device with the largest
// excess.
void Fitter::search(Attempt& best, std::int64_t most_moves) {
  const DeviceIndex devices = machine_.device_count();
  if (devices < 2 || units_.count() == 0) return;
  std::vector<Eviction> worst = worst_evictions(best);
  for (std::int64_t tries = 0; tries < most_moves && best.overflow > 0 && !out_of_time(); ++tries) {
    std::vector<DeviceIndex> device_of = best.placement.device_of;
    const bool evict = !worst.empty() && random_.below(2) == 0;
    const std::int64_t moves = 1 + random_.below(3);
    for (std::int64_t move = 0; move < moves; ++move) {
      const auto any = static_cast<std::int32_t>(random_.below(units_.count()));
      const std::int32_t unit =
          evict ? worst[static_cast<std::size_t>(random_.below(std::ssize(worst)))].unit : any;
      if (units_.pin(unit) != kNone) continue;
      const auto target = static_cast<DeviceIndex>(random_.below(devices));
      for (const NodeIndex node : units_.nodes(unit)) device_of[node] = target;
    }
    Attempt next = judge_devices(std::move(device_of));
    if (next.overflow > best.overflow) continue;
    best = std::move(next);
    worst = worst_evictions(best);
  }
}

std::vector<Fitter::Eviction> Fitter::worst_evictions(const Attempt& attempt) const {
  DeviceIndex worst = 0;
  for (DeviceIndex device = 1; device < machine_.device_count(); ++device)
    if (attempt.simulation.use[device].peak_bytes - limit(device) >
        attempt.simulation.use[worst].peak_bytes - limit(worst))
      worst = device;
  return evictions(attempt, worst, peak_time(attempt, worst));
}

Nanoseconds Fitter::peak_time(const Attempt& attempt, DeviceIndex device) {
  const auto& curve = attempt.simulation.memory[device];
  return std::max_element(curve.begin(), curve.end(),
                          [](const MemorySample& a, const MemorySample& b) { return a.bytes < b.bytes; })
      ->time;
}

// Tries all placements of a small graph until one fits. Returns false if there are too many, or if
// the time is up first.
bool Fitter::exhaust(Attempt& best) {
  constexpr double kMostPlacements = 1 << 20;
  if (placement_count(units_, machine_.device_count()) > kMostPlacements) return false;
  for_each_placement(graph_, units_, machine_.device_count(), [&](const std::vector<DeviceIndex>& device_of) {
    Attempt next = judge_devices(device_of);
    if (next.overflow < best.overflow) best = std::move(next);
    return best.overflow > 0 && !out_of_time();
  });
  return best.overflow == 0 || !out_of_time();
}

std::string Fitter::describe(const Attempt& attempt) const {
  for (DeviceIndex device = 0; device < machine_.device_count(); ++device) {
    const Bytes peak = attempt.simulation.use[device].peak_bytes;
    if (peak > limit(device))
      return fmt::format("device {} would reach {} bytes, {} over its limit of {}", device, peak,
                         peak - limit(device), limit(device));
  }
  return "fits";
}

OverflowResult Fitter::run(const Placement& placement, Effort effort) {
  if (auto proof = infeasibility_certificate(cost_, units_)) return {std::nullopt, *proof, true};
  Attempt best = judge(placement);
  constexpr int kMostRounds = 64;
  for (int round = 0; round < kMostRounds && best.overflow > 0 && (round == 0 || !out_of_time()); ++round)
    if (!greedy_round(best)) break;
  constexpr std::int64_t kQuickMoves = 300, kThoroughMoves = 1 << 20;
  bool complete = false;
  if (best.overflow > 0 && effort == Effort::kThorough) complete = exhaust(best);
  if (best.overflow > 0 && !complete) search(best, effort == Effort::kQuick ? kQuickMoves : kThoroughMoves);
  if (best.overflow == 0) return {best.placement, "", false};
  // This is no proof, even after all placements: another order of the nodes might fit.
  if (complete)
    return {std::nullopt,
            "of all placements none fits in the orders tried: in the closest, " + describe(best), false};
  return {std::nullopt, "in the closest placement found, " + describe(best), false};
}

}  // namespace

Bytes memory_overflow(const Machine& machine, const Simulation& simulation) {
  Bytes sum = 0;
  for (DeviceIndex device = 0; device < machine.device_count(); ++device)
    sum += std::max<Bytes>(0, simulation.use[device].peak_bytes - machine.device(device).memory_limit);
  return sum;
}

OverflowResult fit_memory(const CostModel& cost, const Units& units, const Placement& placement,
                          Effort effort, std::chrono::nanoseconds time,
                          std::chrono::steady_clock::time_point deadline) {
  return Fitter(cost, units, time, deadline).run(placement, effort);
}

}  // namespace convoy::partition
