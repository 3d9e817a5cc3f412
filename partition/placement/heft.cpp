// HEFT with insertion.
#include <algorithm>
#include <numeric>

#include "partition/placement/baselines.h"
#include "partition/placement/timeline.h"
#include "partition/simulation/simulator.h"

namespace convoy::partition {
namespace {

class Heft {
 public:
  Heft(const CostModel& cost, const Units& units)
      : cost_(cost),
        graph_(cost.graph()),
        given_(units),
        timelines_(cost.device_count()),
        ready_(cost.device_count()),
        start_(graph_.node_count()),
        finish_(graph_.node_count()) {
    result_.devices = cost.device_count();
    result_.device_of.assign(graph_.node_count(), kNone);
  }

  Placement run() {
    std::vector<NodeIndex> order(graph_.topological_order().begin(), graph_.topological_order().end());
    const std::vector<Nanoseconds> rank = upward_ranks();
    // Stable on a topological order: nodes without time keep their place after their producers.
    std::stable_sort(order.begin(), order.end(), [&](NodeIndex a, NodeIndex b) { return rank[a] > rank[b]; });
    for (const NodeIndex node : order) place(node);
    make_order();
    return std::move(result_);
  }

 private:
  std::vector<Nanoseconds> upward_ranks() const {
    std::vector<Nanoseconds> rank(graph_.node_count(), 0);
    const auto order = graph_.topological_order();
    for (auto at = order.rbegin(); at != order.rend(); ++at) {
      Nanoseconds longest = 0;
      for (EdgeIndex edge = graph_.out_begin(*at); edge < graph_.out_end(*at); ++edge)
        longest = std::max(longest, rank[graph_.target(edge)] + cost_.transfer_time(edge));
      rank[*at] = longest + cost_.average_time(*at);
    }
    return rank;
  }

  // When the node's inputs are on each device: with equal links, all devices but the producers' see one time.
  void find_ready(NodeIndex node) {
    std::fill(ready_.begin(), ready_.end(), 0);
    const DeviceIndex devices = result_.devices;
    for (const EdgeIndex edge : graph_.in_edges(node)) {
      const NodeIndex producer = graph_.source(edge);
      const DeviceIndex home = result_.device_of[producer];
      for (DeviceIndex device = 0; device < devices; ++device)
        ready_[device] =
            std::max(ready_[device], finish_[producer] + cost_.transfer_time(edge, home, device));
    }
  }

  void place(NodeIndex node) {
    find_ready(node);
    DeviceIndex best = given_.of_node(node);
    if (best == kNone) {
      Nanoseconds best_finish = std::numeric_limits<Nanoseconds>::max();
      for (DeviceIndex device = 0; device < result_.devices; ++device) {
        const Nanoseconds time = cost_.run_time(node, device);
        if (ready_[device] + time >= best_finish) continue;
        const Nanoseconds finish = timelines_[device].earliest(ready_[device], time) + time;
        if (finish < best_finish) best_finish = finish, best = device;
      }
      given_.set_node(node, best);
    }
    const Nanoseconds time = cost_.run_time(node, best);
    start_[node] = timelines_[best].earliest(ready_[best], time);
    finish_[node] = start_[node] + time;
    timelines_[best].occupy(start_[node], time);
    result_.device_of[node] = best;
  }

  void make_order() {
    std::vector<NodeIndex> by_start(graph_.topological_order().begin(), graph_.topological_order().end());
    std::stable_sort(by_start.begin(), by_start.end(), [&](NodeIndex a, NodeIndex b) {
      return start_[a] != start_[b] ? start_[a] < start_[b] : finish_[a] < finish_[b];
    });
    result_.order.resize(result_.devices);
    for (const NodeIndex node : by_start) result_.order[result_.device_of[node]].push_back(node);
  }

  const CostModel& cost_;
  const TaskGraph& graph_;
  UnitDevices given_;
  std::vector<Timeline> timelines_;
  std::vector<Nanoseconds> ready_, start_, finish_;
  Placement result_;
};

}  // namespace

Placement place_by_heft(const CostModel& cost, const Units& units) { return Heft(cost, units).run(); }

}  // namespace convoy::partition
