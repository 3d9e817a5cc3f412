// The refinement of ParDNN. It moves nodes, swaps paths and moves critical paths to other devices.
#include <algorithm>

#include "partition/placement/critical_path.h"
#include "partition/placement/pardnn.h"
#include "partition/placement/schedule_state.h"

namespace convoy::partition {
namespace {

class Refiner {
 public:
  Refiner(const CostModel& cost, const Units& units, std::span<const DeviceIndex> device_of,
          const Simulation& simulation)
      : cost_(cost),
        graph_(cost.graph()),
        units_(units),
        state_(cost, device_of, simulation),
        // Limit the work, so that the whole algorithm stays almost linear in the number of nodes.
        budget_(work::kRecompute * (4 * std::int64_t{graph_.node_count()} + 50'000)) {}

  Placement run() {
    for (bool improved = true; improved && within_budget();) {
      improved = false;
      find_critical_path(state_, path_);
      improved |= switch_critical_path();
      improved |= swap_paths();
      improved |= switch_nodes();
    }
    return state_.placement();
  }

 private:
  bool within_budget() const { return state_.work() < budget_; }

  bool keep_if_shorter(ScheduleState::Move move, Nanoseconds before) {
    if (!move.finished() || state_.makespan() >= before) return false;
    move.commit();
    return true;
  }

  bool add_unit(NodeIndex node, DeviceIndex device) {
    const std::int32_t unit = units_.of(node);
    if (units_.pin(unit) != kNone && units_.pin(unit) != device) return false;
    for (const NodeIndex member : units_.nodes(unit)) moves_.push_back({member, device});
    return true;
  }

  bool try_moves() {
    const Nanoseconds before = state_.makespan();
    return keep_if_shorter(state_.move(moves_, before - 1), before);
  }

  // Moves the whole critical path to the device on which it already spends most time.
  bool switch_critical_path() {
    std::vector<Nanoseconds> share(cost_.device_count(), 0);
    for (const NodeIndex node : path_) share[state_.device_of(node)] += cost_.average_time(node);
    const auto device =
        static_cast<DeviceIndex>(std::max_element(share.begin(), share.end()) - share.begin());
    moves_.clear();
    for (const NodeIndex node : path_)
      if (state_.device_of(node) != device) add_unit(node, device);
    return !moves_.empty() && try_moves();
  }

  // At each place where the critical path changes from device a to device b, tries a swap: its
  // nodes on b move to a, and the nodes that a runs at that time move to b. Keeps the swap if the
  // schedule is shorter.
  bool swap_paths() {
    bool improved = false;
    for (std::size_t i = 1; i < path_.size() && within_budget(); ++i) {
      const DeviceIndex from = state_.device_of(path_[i - 1]), to = state_.device_of(path_[i]);
      if (from == to) continue;
      moves_.clear();
      std::size_t last = i;
      while (last + 1 < path_.size() && state_.device_of(path_[last + 1]) == to) ++last;
      for (std::size_t at = i; at <= last; ++at) add_unit(path_[at], from);
      const Nanoseconds until = state_.finish(path_[last]);
      NodeIndex other = state_.next_on_device(path_[i - 1]);
      constexpr std::size_t kMostMoved = 1024;
      for (; other != kNone && state_.start(other) < until && moves_.size() < kMostMoved;
           other = state_.next_on_device(other))
        add_unit(other, to);
      improved |= try_moves();
    }
    return improved;
  }

  // Moves each node of the critical path to a neighbour's device if this is estimated to shorten
  // the path.
  bool switch_nodes() {
    bool improved = false;
    for (const NodeIndex node : path_) {
      if (!within_budget()) break;
      if (units_.pin(units_.of(node)) != kNone || units_.nodes(units_.of(node)).size() > 1) continue;
      const Nanoseconds before = state_.makespan();
      DeviceIndex best = kNone;
      Nanoseconds least = before;
      const auto consider = [&](DeviceIndex device) {
        if (device == state_.device_of(node) || device == best) return;
        const Nanoseconds estimate = state_.estimate(node, device);
        if (estimate < least) least = estimate, best = device;
      };
      for (const EdgeIndex edge : graph_.in_edges(node)) consider(state_.device_of(graph_.source(edge)));
      for (const NodeIndex next : graph_.successors(node)) consider(state_.device_of(next));
      if (best != kNone) improved |= keep_if_shorter(state_.move_in_time(node, best, before - 1), before);
    }
    return improved;
  }

  const CostModel& cost_;
  const TaskGraph& graph_;
  const Units& units_;
  ScheduleState state_;
  const std::int64_t budget_;
  std::vector<NodeIndex> path_;
  std::vector<Reassignment> moves_;
};

Placement refine_simulated(const CostModel& cost, const Units& units, const Placement& placement,
                           const Simulation& simulation) {
  Placement refined = Refiner(cost, units, placement.device_of, simulation).run();
  // If transfers depend on each other, the times in ScheduleState may be inexact. So let the
  // simulator check that the result is not longer.
  if (!cost.transfers_independent() && simulate(cost, refined, Detail::kTimes).makespan > simulation.makespan)
    return placement;
  return refined;
}

}  // namespace

Placement refine(const CostModel& cost, const Units& units, const Placement& placement) {
  return refine_simulated(cost, units, placement, simulate(cost, placement, Detail::kTimes));
}

Placement place_by_pardnn(const CostModel& cost, const Units& units) {
  Placement placement = map_clusters(cost, units, slice(cost));
  const Simulation simulation = simulate(cost, placement, Detail::kTimes);
  placement.order = simulation.order;
  return refine_simulated(cost, units, placement, simulation);
}

}  // namespace convoy::partition
