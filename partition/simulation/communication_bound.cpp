#include "partition/simulation/communication_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace convoy::partition {
namespace {

// A producer of the node that is examined: when it can begin, how long it runs, and how long the
// transfer of its tensor takes.
struct Neighbour {
  Nanoseconds begin, time, transfer;
  Nanoseconds elsewhere() const { return begin + time + transfer; }
};

class Bound {
 public:
  explicit Bound(const CostModel& cost) : cost_(cost), graph_(cost.graph()) {
    const DeviceIndex devices = cost.device_count();
    time_.reserve(graph_.node_count()), transfer_.reserve(graph_.edge_count());
    for (NodeIndex node = 0; node < graph_.node_count(); ++node) {
      Nanoseconds least = std::numeric_limits<Nanoseconds>::max();
      for (DeviceIndex device = 0; device < devices; ++device)
        least = std::min(least, cost.run_time(node, device));
      time_.push_back(least);
    }
    for (EdgeIndex edge = 0; edge < graph_.edge_count(); ++edge) transfer_.push_back(shortest_transfer(edge));
  }

  Nanoseconds run() {
    const auto order = graph_.topological_order();
    std::vector<Nanoseconds> head(order.size(), 0), tail(order.size(), 0);
    for (const NodeIndex node : order) {
      near_.clear();
      for (const EdgeIndex edge : graph_.in_edges(node)) {
        const NodeIndex producer = graph_.source(edge);
        near_.push_back({head[producer], time_[producer], transfer_[edge]});
      }
      head[node] = earliest();
    }
    Nanoseconds longest = 0;
    for (auto at = order.rbegin(); at != order.rend(); ++at) {
      near_.clear();
      for (EdgeIndex edge = graph_.out_begin(*at); edge < graph_.out_end(*at); ++edge) {
        const NodeIndex consumer = graph_.target(edge);
        near_.push_back({tail[consumer], time_[consumer], transfer_[edge]});
      }
      tail[*at] = earliest();
      longest = std::max(longest, head[*at] + time_[*at] + tail[*at]);
    }
    return longest;
  }

 private:
  Nanoseconds shortest_transfer(EdgeIndex edge) const {
    const DeviceIndex devices = cost_.device_count();
    if (cost_.machine().same_links()) return cost_.transfer_time(edge);
    Nanoseconds least = std::numeric_limits<Nanoseconds>::max();
    for (DeviceIndex from = 0; from < devices; ++from)
      for (DeviceIndex to = 0; to < devices; ++to)
        if (from != to) least = std::min(least, cost_.transfer_time(edge, from, to));
    return least;
  }

  // Returns the earliest time at which a node can begin. near_ holds the node's producers. In the
  // pass from the end of the graph backwards, near_ holds its consumers instead, and time counts
  // backwards.
  Nanoseconds earliest() {
    std::sort(near_.begin(), near_.end(),
              [](const Neighbour& a, const Neighbour& b) { return a.elsewhere() > b.elsewhere(); });
    // The bound tries at most this many producers on the node's own device.
    constexpr std::size_t kMostTogether = 32;
    Nanoseconds best = std::numeric_limits<Nanoseconds>::max(), together = 0;
    here_.clear();
    for (const Neighbour& next : near_) {
      best = std::min(best, std::max(together, next.elsewhere()));
      if (together >= best || here_.size() == kMostTogether)
        return std::min(best, std::max(together, Nanoseconds{0}));
      here_.insert(std::upper_bound(here_.begin(), here_.end(), next,
                                    [](const Neighbour& a, const Neighbour& b) { return a.begin < b.begin; }),
                   next);
      together = 0;
      for (const Neighbour& one : here_) together = std::max(together, one.begin) + one.time;
    }
    return std::min(best, together);
  }

  const CostModel& cost_;
  const TaskGraph& graph_;
  std::vector<Nanoseconds> time_, transfer_;
  std::vector<Neighbour> near_, here_;
};

}  // namespace

Nanoseconds communication_bound(const CostModel& cost) {
  constexpr double kMostWork = 1e7;
  const double pairs = cost.machine().same_links() ? 1.0 : std::pow(cost.device_count(), 2);
  const TaskGraph& graph = cost.graph();
  if (pairs * graph.edge_count() + static_cast<double>(graph.node_count()) * cost.device_count() > kMostWork)
    return 0;
  if (cost.device_count() == 1) return 0;
  return Bound(cost).run();
}

}  // namespace convoy::partition
