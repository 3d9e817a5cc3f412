// Local search around the critical path.
#include "partition/placement/improvement.h"

#include <algorithm>
#include <optional>

#include "partition/placement/schedule_state.h"
#include "partition/random.h"

namespace convoy::partition {
namespace {

class LocalSearch {
 public:
  LocalSearch(const CostModel& cost, const Units& units, const Placement& placement,
              const ImprovementLimits& limits)
      : cost_(cost),
        graph_(cost.graph()),
        units_(units),
        limits_(limits),
        random_(limits.seed),
        best_(placement),
        state_(std::in_place, cost, placement.device_of, simulate(cost, placement, Detail::kTimes)),
        in_cluster_(graph_.node_count(), 0) {
    current_ = state_->makespan();
    recorded_ = current_;
  }

  Placement run(ImprovementCounts* counts);

 private:
  bool out_of_time();
  void refresh();
  void step();
  void try_node(NodeIndex node);
  void try_run(std::size_t at);
  void try_cluster(NodeIndex node);
  void try_swap(NodeIndex node);
  DeviceIndex neighbour_device(NodeIndex node);
  DeviceIndex other_device(DeviceIndex device);
  bool add_unit(NodeIndex node, DeviceIndex device);
  void decide(bool finished);
  void visit_forbidden(Nanoseconds makespan);
  Nanoseconds limit() const { return current_ + threshold_; }
  void keep_best();
  void return_to_best();
  void list_again();
  void restart_from(std::span<const DeviceIndex> device_of, const Simulation& simulation);

  const CostModel& cost_;
  const TaskGraph& graph_;
  const Units& units_;
  const ImprovementLimits limits_;
  Random random_;
  Placement best_;

  std::optional<ScheduleState> state_;
  Nanoseconds current_ = 0, recorded_ = 0, threshold_ = 0;
  bool unsaved_ = false, stale_ = true;
  std::vector<NodeIndex> path_;
  std::vector<Reassignment> moves_;
  std::vector<NodeIndex> cluster_;
  std::vector<std::uint32_t> in_cluster_;
  std::uint32_t cluster_round_ = 0;
  bool tails_known_ = false;
  std::int64_t since_refresh_ = 0, since_best_ = 0, recomputed_at_tails_ = 0, recomputed_at_listing_ = 0;
  Clock::time_point begin_ = Clock::now();
  ImprovementCounts counts_;
};

bool LocalSearch::out_of_time() {
  if (recorded_ <= limits_.good_enough) return true;
  return counts_.tried >= limits_.moves || Clock::now() >= limits_.deadline;
}

// The threshold falls from 0.2 % of the makespan to nothing over the time given.
void LocalSearch::refresh() {
  double used = static_cast<double>(counts_.tried) / static_cast<double>(limits_.moves);
  if (limits_.deadline != Clock::time_point::max())
    used = std::max(used, std::chrono::duration<double>(Clock::now() - begin_) / (limits_.deadline - begin_));
  constexpr double kFirstThreshold = 2e-3;
  threshold_ =
      static_cast<Nanoseconds>(kFirstThreshold * std::max(0.0, 0.8 - used) * static_cast<double>(recorded_));
  state_->critical_path(path_, random_.below(2) == 0);
  // Tails cost a pass over the graph: refresh them when the moves have cost as much.
  if (!tails_known_ || state_->nodes_recomputed() - recomputed_at_tails_ > 2 * graph_.node_count()) {
    state_->compute_tails();
    tails_known_ = true;
    recomputed_at_tails_ = state_->nodes_recomputed();
  }
  since_refresh_ = 0;
  stale_ = false;
}

void LocalSearch::keep_best() {
  if (!unsaved_) return;
  unsaved_ = false;
  best_ = state_->placement();
}

// A shorter schedule that memory forbids: now and then a step through it leads to one that is allowed.
void LocalSearch::visit_forbidden(Nanoseconds makespan) {
  constexpr std::int64_t kOneIn = 4;
  if (unsaved_ || random_.below(kOneIn) != 0) {
    state_->rollback();
    return keep_best();
  }
  state_->commit();
  stale_ = true;
  current_ = makespan;
}

void LocalSearch::decide(bool finished) {
  ++counts_.tried;
  ++since_best_;
  if (!finished) return state_->rollback();
  const Nanoseconds makespan = state_->makespan();
  if (makespan > limit()) return state_->rollback();
  if (makespan < recorded_ && limits_.accept && !limits_.accept(state_->placement()))
    return visit_forbidden(makespan);
  if (makespan > recorded_ && unsaved_) {
    // Leaving the best state for a worse one: remember it first.
    state_->rollback();
    keep_best();
    return;
  }
  state_->commit();
  ++counts_.accepted;
  stale_ = stale_ || makespan != current_;
  current_ = makespan;
  if (current_ < recorded_) {
    recorded_ = current_;
    unsaved_ = true;
    since_best_ = 0;
  }
}

DeviceIndex LocalSearch::other_device(DeviceIndex device) {
  const auto other = static_cast<DeviceIndex>(random_.below(cost_.device_count() - 1));
  return other + (other >= device ? 1 : 0);
}

// A device that holds a producer or a consumer of the node, or any.
DeviceIndex LocalSearch::neighbour_device(NodeIndex node) {
  const std::int64_t in = graph_.in_degree(node), out = graph_.out_degree(node);
  if (in + out > 0 && random_.below(4) != 0) {
    const std::int64_t pick = random_.below(in + out);
    const NodeIndex neighbour =
        pick < in ? graph_.source(graph_.in_edges(node)[pick]) : graph_.successors(node)[pick - in];
    if (state_->device_of(neighbour) != state_->device_of(node)) return state_->device_of(neighbour);
  }
  return other_device(state_->device_of(node));
}

// Adds the node's whole unit to the move, once; false when its pin forbids.
bool LocalSearch::add_unit(NodeIndex node, DeviceIndex device) {
  const std::int32_t unit = units_.of(node);
  if (units_.pin(unit) != kNone && units_.pin(unit) != device) return false;
  if (units_.trivial()) {
    moves_.push_back({node, device});
    return true;
  }
  for (const Reassignment& move : moves_)
    if (move.node == units_.nodes(unit)[0]) return true;
  for (const NodeIndex member : units_.nodes(unit)) moves_.push_back({member, device});
  return true;
}

void LocalSearch::try_node(NodeIndex node) {
  moves_.clear();
  DeviceIndex device = neighbour_device(node);
  if (units_.nodes(units_.of(node)).size() > 1) {
    if (add_unit(node, device)) decide(state_->move(moves_, limit()));
    return;
  }
  if (units_.pin(units_.of(node)) != kNone) device = state_->device_of(node);
  // The best of the few devices by estimate; its own device when only the order may change.
  Nanoseconds best = state_->estimate(node, device);
  if (units_.pin(units_.of(node)) == kNone)
    for (int more = 0; more < 2; ++more) {
      const DeviceIndex other = neighbour_device(node);
      const Nanoseconds estimate = state_->estimate(node, other);
      if (estimate < best) best = estimate, device = other;
    }
  ++counts_.tried;
  if (best > limit()) return;
  decide(state_->move_in_time(node, device, limit()));
}

// A stretch of the critical path on one device goes to the device before it or behind it.
void LocalSearch::try_run(std::size_t at) {
  const DeviceIndex home = state_->device_of(path_[at]);
  std::size_t first = at, last = at;
  constexpr std::size_t kLongest = 256;
  const std::size_t longest = 1 + static_cast<std::size_t>(random_.below(kLongest));
  while (first > 0 && state_->device_of(path_[first - 1]) == home && last - first < longest) --first;
  while (last + 1 < path_.size() && state_->device_of(path_[last + 1]) == home && last - first < longest)
    ++last;
  DeviceIndex device = other_device(home);
  if (first > 0 && random_.below(2) == 0)
    device = state_->device_of(path_[first - 1]);
  else if (last + 1 < path_.size())
    device = state_->device_of(path_[last + 1]);
  if (device == home) device = other_device(home);
  moves_.clear();
  for (std::size_t i = first; i <= last; ++i)
    if (!add_unit(path_[i], device)) return;
  decide(state_->move(moves_, limit()));
}

// Nodes on one device joined by edges that cost at least a random share of one of the node's own edges.
void LocalSearch::try_cluster(NodeIndex node) {
  const DeviceIndex home = state_->device_of(node);
  const std::int64_t in = graph_.in_degree(node), out = graph_.out_degree(node);
  if (in + out == 0) return try_node(node);
  const std::int64_t pick = random_.below(in + out);
  const EdgeIndex seed =
      pick < in ? graph_.in_edges(node)[pick] : static_cast<EdgeIndex>(graph_.out_begin(node) + pick - in);
  const auto heavy =
      static_cast<Nanoseconds>(static_cast<double>(cost_.transfer_time(seed)) * random_.unit());
  const std::size_t largest = std::size_t{2} << random_.below(8);
  const bool downward = random_.below(3) != 0, upward = !downward || random_.below(2) == 0;
  ++cluster_round_;
  cluster_.assign(1, node);
  in_cluster_[node] = cluster_round_;
  const auto visit = [&](NodeIndex other, EdgeIndex edge) {
    if (in_cluster_[other] == cluster_round_ || state_->device_of(other) != home ||
        cost_.transfer_time(edge) < heavy)
      return;
    in_cluster_[other] = cluster_round_;
    cluster_.push_back(other);
  };
  for (std::size_t i = 0; i < cluster_.size() && cluster_.size() < largest; ++i) {
    const NodeIndex member = cluster_[i];
    if (upward)
      for (const EdgeIndex edge : graph_.in_edges(member)) visit(graph_.source(edge), edge);
    if (downward)
      for (EdgeIndex edge = graph_.out_begin(member); edge < graph_.out_end(member); ++edge)
        visit(graph_.target(edge), edge);
  }
  const DeviceIndex device = neighbour_device(cluster_[random_.below(std::ssize(cluster_))]);
  moves_.clear();
  for (const NodeIndex member : cluster_)
    if (!add_unit(member, device == home ? other_device(home) : device)) return;
  decide(state_->move(moves_, limit()));
}

// The node changes places with one that runs at about the same time elsewhere.
void LocalSearch::try_swap(NodeIndex node) {
  const DeviceIndex home = state_->device_of(node), device = neighbour_device(node);
  NodeIndex partner = kNone;
  const std::int64_t in = graph_.in_degree(node);
  if (in > 0) {
    const NodeIndex producer = graph_.source(graph_.in_edges(node)[random_.below(in)]);
    for (const NodeIndex sibling : graph_.successors(producer))
      if (state_->device_of(sibling) == device && state_->start(sibling) < state_->finish(node) &&
          state_->finish(sibling) > state_->start(node))
        partner = sibling;
  }
  if (partner == kNone) return try_node(node);
  moves_.clear();
  if (add_unit(node, device) && add_unit(partner, home)) decide(state_->move(moves_, limit()));
}

void LocalSearch::step() {
  const auto at = static_cast<std::size_t>(random_.below(std::ssize(path_)));
  const NodeIndex node = path_[at];
  switch (random_.below(8)) {
    case 0:
      return try_run(at);
    case 1:
    case 2:
      return try_cluster(node);
    case 3:
      return try_swap(node);
    default:
      return try_node(node);
  }
}

void LocalSearch::restart_from(std::span<const DeviceIndex> device_of, const Simulation& simulation) {
  counts_.nodes_recomputed += state_->nodes_recomputed();
  state_.emplace(cost_, std::vector<DeviceIndex>(device_of.begin(), device_of.end()), simulation);
  current_ = state_->makespan();
  since_best_ = recomputed_at_tails_ = recomputed_at_listing_ = 0;
  stale_ = true;
  tails_known_ = false;
}

void LocalSearch::return_to_best() {
  keep_best();
  restart_from(best_.device_of, simulate(cost_, best_, Detail::kTimes));
}

// Moves keep orders as far as they can; now and then list scheduling finds a better order for the same
// devices.
void LocalSearch::list_again() {
  recomputed_at_listing_ = state_->nodes_recomputed();
  Placement listed{cost_.device_count(), {state_->devices().begin(), state_->devices().end()}, {}};
  const Simulation simulation = simulate(cost_, listed, Detail::kTimes);
  if (simulation.makespan >= current_) return;
  listed.order = simulation.order;
  if (limits_.accept && !limits_.accept(listed)) return;
  keep_best();
  restart_from(listed.device_of, simulation);
  if (current_ >= recorded_) return;
  recorded_ = current_;
  unsaved_ = true;
}

Placement LocalSearch::run(ImprovementCounts* counts) {
  constexpr std::int64_t kRefreshEvery = 200, kPatience = 4000, kForbiddenPatience = 300;
  if (cost_.device_count() > 1 && graph_.node_count() > 0)
    while (!out_of_time()) {
      if (since_best_ > (current_ < recorded_ ? kForbiddenPatience : kPatience) && current_ != recorded_)
        return_to_best();
      if (state_->nodes_recomputed() - recomputed_at_listing_ > 10 * graph_.node_count()) list_again();
      if (stale_ || since_refresh_ >= kRefreshEvery) refresh();
      ++since_refresh_;
      ++since_best_;
      step();
    }
  keep_best();
  counts_.nodes_recomputed += state_->nodes_recomputed();
  if (counts != nullptr) *counts = counts_;
  return best_;
}

}  // namespace

Placement improve(const CostModel& cost, const Units& units, const Placement& placement,
                  const ImprovementLimits& limits, ImprovementCounts* counts) {
  Placement result = LocalSearch(cost, units, placement, limits).run(counts);
  // The search neglects contention; the simulator does not.
  if (!cost.transfers_independent() &&
      simulate(cost, result, Detail::kTimes).makespan > simulate(cost, placement, Detail::kTimes).makespan)
    return placement;
  if (limits.accept && !limits.accept(result)) return placement;
  return result;
}

}  // namespace convoy::partition
