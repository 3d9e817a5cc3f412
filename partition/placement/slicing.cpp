// ParDNN's graph slicing: primary clusters by repeated critical paths with communication, then secondary
// ones.
#include <algorithm>

#include "partition/placement/pardnn.h"

namespace convoy::partition {
namespace {

class Slicer {
 public:
  explicit Slicer(const CostModel& cost)
      : cost_(cost), graph_(cost.graph()), taken_(graph_.node_count(), false), level_(graph_.node_count()) {}

  Slices run() {
    Slices slices;
    for (DeviceIndex device = 0; device < cost_.device_count(); ++device) {
      compute_levels();
      slices.primary.push_back(follow(heaviest()));
    }
    compute_levels();
    // Levels stay those of the graph after the primary clusters: a bound for what is left, and one pass in
    // all.
    std::vector<NodeIndex> by_level;
    for (const NodeIndex node : graph_.topological_order())
      if (!taken_[node]) by_level.push_back(node);
    std::stable_sort(by_level.begin(), by_level.end(),
                     [&](NodeIndex a, NodeIndex b) { return level_[a] > level_[b]; });
    for (const NodeIndex node : by_level)
      if (!taken_[node]) slices.secondary.push_back(follow(node));
    return slices;
  }

 private:
  // Bottom levels of what is not taken, with communication on every edge.
  void compute_levels() {
    const auto order = graph_.topological_order();
    for (auto at = order.rbegin(); at != order.rend(); ++at) {
      if (taken_[*at]) continue;
      Nanoseconds longest = 0;
      for (EdgeIndex edge = graph_.out_begin(*at); edge < graph_.out_end(*at); ++edge)
        if (const NodeIndex next = graph_.target(edge); !taken_[next])
          longest = std::max(longest, level_[next] + cost_.transfer_time(edge));
      level_[*at] = longest + cost_.average_time(*at);
    }
  }

  NodeIndex heaviest() const {
    NodeIndex best = kNone;
    for (const NodeIndex node : graph_.topological_order())
      if (!taken_[node] && (best == kNone || level_[node] > level_[best])) best = node;
    return best;
  }

  // Takes the path that goes on to the heaviest remaining consumer.
  std::vector<NodeIndex> follow(NodeIndex node) {
    std::vector<NodeIndex> path;
    while (node != kNone) {
      path.push_back(node);
      taken_[node] = true;
      NodeIndex next = kNone;
      Nanoseconds longest = -1;
      for (EdgeIndex edge = graph_.out_begin(node); edge < graph_.out_end(node); ++edge) {
        const NodeIndex consumer = graph_.target(edge);
        const Nanoseconds length = cost_.transfer_time(edge) + level_[consumer];
        if (!taken_[consumer] && length > longest) longest = length, next = consumer;
      }
      node = next;
    }
    return path;
  }

  const CostModel& cost_;
  const TaskGraph& graph_;
  std::vector<bool> taken_;
  std::vector<Nanoseconds> level_;
};

}  // namespace

Slices slice(const CostModel& cost) { return Slicer(cost).run(); }

}  // namespace convoy::partition
