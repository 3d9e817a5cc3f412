// HEFT (baselines.h) with insertion: a node may use an idle gap between nodes that are already
// placed.
#include <algorithm>
#include <numeric>

#include "partition/placement/baselines.h"
#include "partition/placement/timeline.h"
#include "partition/simulation/simulator.h"

namespace convoy::partition {
namespace {

class Heft {
 public:
  Heft(const CostModel& cost, const Units& units, double transfer_weight, bool insertion)
      : cost_(cost),
        graph_(cost.graph()),
        transfer_weight_(transfer_weight),
        insertion_(insertion),
        given_(units),
        timelines_(cost.device_count()),
        ready_(cost.device_count()),
        placed_(graph_.node_count()) {
    result_.devices = cost.device_count();
  }

  Placement run() {
    const std::vector<Nanoseconds> rank = upward_ranks();
    std::vector<std::pair<Nanoseconds, NodeIndex>> order;
    order.reserve(rank.size());
    for (const NodeIndex node : graph_.topological_order()) order.emplace_back(rank[node], node);
    // A node with no duration may have the same rank as its producer. The stable sort keeps it
    // after the producer.
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    for (const auto& [its_rank, node] : order) place(node);
    make_order();
    result_.device_of.reserve(placed_.size());
    for (const Placed& node : placed_) result_.device_of.push_back(node.device);
    return std::move(result_);
  }

 private:
  std::vector<Nanoseconds> upward_ranks() const {
    std::vector<Nanoseconds> rank(graph_.node_count(), 0);
    const auto order = graph_.topological_order();
    for (auto at = order.rbegin(); at != order.rend(); ++at) {
      Nanoseconds longest = 0;
      for (EdgeIndex edge = graph_.out_begin(*at); edge < graph_.out_end(*at); ++edge)
        longest = std::max(longest, rank[graph_.target(edge)] + weighted(cost_.transfer_time(edge)));
      rank[*at] = longest + cost_.average_time(*at);
    }
    return rank;
  }

  Nanoseconds weighted(Nanoseconds transfer) const {
    return static_cast<Nanoseconds>(transfer_weight_ * static_cast<double>(transfer));
  }

  // Finds for each device the time at which all inputs of the node have arrived there.
  void find_ready(NodeIndex node) {
    std::fill(ready_.begin(), ready_.end(), 0);
    const DeviceIndex devices = result_.devices;
    for (const EdgeIndex edge : graph_.in_edges(node)) {
      const Placed& producer = placed_[graph_.source(edge)];
      for (DeviceIndex device = 0; device < devices; ++device)
        ready_[device] =
            std::max(ready_[device], producer.finish + cost_.transfer_time(edge, producer.device, device));
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
        const Nanoseconds finish = timelines_[device].earliest(ready_[device], time, insertion_) + time;
        if (finish < best_finish) best_finish = finish, best = device;
      }
      given_.set_node(node, best);
    }
    const Nanoseconds time = cost_.run_time(node, best);
    const Nanoseconds start = timelines_[best].earliest(ready_[best], time, insertion_);
    timelines_[best].occupy(start, time);
    placed_[node] = {start, start + time, best};
  }

  void make_order() {
    std::vector<std::pair<Placed, NodeIndex>> by_start;
    by_start.reserve(placed_.size());
    for (const NodeIndex node : graph_.topological_order()) by_start.emplace_back(placed_[node], node);
    std::stable_sort(by_start.begin(), by_start.end(), [](const auto& one, const auto& other) {
      const Placed &a = one.first, &b = other.first;
      return a.start != b.start ? a.start < b.start : a.finish < b.finish;
    });
    result_.order.resize(result_.devices);
    for (const auto& [placed, node] : by_start) result_.order[placed.device].push_back(node);
  }

  struct Placed {
    Nanoseconds start = 0, finish = 0;
    DeviceIndex device = kNone;
  };

  const CostModel& cost_;
  const TaskGraph& graph_;
  const double transfer_weight_;
  const bool insertion_;
  UnitDevices given_;
  std::vector<Timeline> timelines_;
  std::vector<Nanoseconds> ready_;
  std::vector<Placed> placed_;  // time and device of each placed node
  Placement result_;
};

}  // namespace

Placement place_by_heft(const CostModel& cost, const Units& units, double transfer_weight, bool insertion) {
  return Heft(cost, units, transfer_weight, insertion).run();
}

}  // namespace convoy::partition
