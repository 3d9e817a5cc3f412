// The moves of the local search: giving another device to a node, to a part of the critical path or
// to a cluster of nodes, and swapping two nodes.
#include <cmath>
#include <limits>

#include "partition/placement/local_search.h"

namespace convoy::partition {

DeviceIndex LocalSearch::other_device(DeviceIndex device) {
  const auto other = static_cast<DeviceIndex>(random_.below(cost_.device_count() - 1));
  return other + (other >= device ? 1 : 0);
}

// Returns the device of a random producer or consumer of the node, or a random other device.
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

// Adds the node to the current move, together with all nodes of its unit (units.h), which must be
// on the same device. Returns false if a pin forbids the device.
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
  // Estimate the makespan for three devices and take the best. A pinned node keeps its device and
  // only changes its position in the order.
  Nanoseconds best = state_->estimate(node, device);
  if (units_.pin(units_.of(node)) == kNone)
    for (int more = 0; more < 2; ++more) {
      const DeviceIndex other = neighbour_device(node);
      const Nanoseconds estimate = state_->estimate(node, other);
      if (estimate < best) best = estimate, device = other;
    }
  if (best > limit()) return;
  decide(state_->move_in_time(node, device, limit()));
}

// Takes consecutive nodes of the critical path that are on one device. Moves them to the device of
// the node before or after them on the path, or to another device.
void LocalSearch::try_stretch(std::size_t at) {
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

// Moves a cluster: the node, and nodes of its device that are joined to it by a chain of expensive
// edges. To decide which edges are expensive, chooses one of the node's edges and a fraction at
// random. An edge is expensive if its cost is at least this fraction of the chosen edge's cost.
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
  ++cluster_number_;
  cluster_.assign(1, node);
  in_cluster_[node] = cluster_number_;
  const auto visit = [&](NodeIndex other, EdgeIndex edge) {
    if (in_cluster_[other] == cluster_number_ || state_->device_of(other) != home ||
        cost_.transfer_time(edge) < heavy)
      return;
    in_cluster_[other] = cluster_number_;
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

// Swaps the node with a node of another device that runs at about the same time.
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

// Leaves a local optimum by one or two moves, which are accepted regardless of their cost.
void LocalSearch::kick() {
  for (std::int64_t moves = 1 + random_.below(2); moves > 0; --moves) {
    if (stale_) refresh();
    save_best();
    kicking_ = true;
    const auto at = static_cast<std::size_t>(random_.below(std::ssize(path_)));
    random_.below(2) == 0 ? try_stretch(at) : try_cluster(path_[at]);
    kicking_ = false;
  }
  stale_ = true;
  since_best_ = 0;
}

// Takes a node that holds memory at the peak of the device with the largest excess, and tries to
// move it to another device, alone or with its cluster. Returns false if there is no such node.
bool LocalSearch::try_relief() {
  if (at_peak_.empty()) return false;
  const NodeIndex node = at_peak_[static_cast<std::size_t>(random_.below(std::ssize(at_peak_)))];
  if (random_.below(2) == 0)
    try_cluster(node);
  else
    try_node(node);
  return true;
}

void LocalSearch::step() {
  constexpr double kAnywhere = 0.2;
  if (score_.overflow > 0 && random_.below(2) == 0) {
    slack_ = static_cast<Nanoseconds>(-temperature_ * std::log(1 - random_.unit()));
    if (try_relief()) return;
  }
  slack_ = static_cast<Nanoseconds>(-temperature_ * std::log(1 - random_.unit()));
  const auto at = static_cast<std::size_t>(random_.below(std::ssize(path_)));
  const NodeIndex node =
      random_.unit() < kAnywhere ? static_cast<NodeIndex>(random_.below(graph_.node_count())) : path_[at];
  switch (random_.below(8)) {
    case 0:
      return try_stretch(at);
    case 1:
    case 2:
      return try_cluster(node);
    case 3:
      return try_swap(node);
    default:
      return try_node(node);
  }
}

}  // namespace convoy::partition
