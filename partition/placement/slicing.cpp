// The slicing of ParDNN (pardnn.h). It takes one critical path per device out of the graph; these
// are the primary clusters. The remaining nodes form secondary clusters.
#include <algorithm>
#include <limits>

#include "partition/placement/pardnn.h"

namespace convoy::partition {
namespace {

// Stores the graph in reversed topological order with all out-edges in one array. compute_levels()
// runs K + 1 times for K devices, and on a large graph memory access dominates its time.
class Slicer {
 public:
  explicit Slicer(const CostModel& cost)
      : devices_(cost.device_count()),
        node_(cost.graph().topological_order().rbegin(), cost.graph().topological_order().rend()),
        level_(node_.size()),
        begin_(1, 0) {
    const TaskGraph& graph = cost.graph();
    std::vector<std::int32_t> position(node_.size());
    for (std::size_t at = 0; at < node_.size(); ++at) position[node_[at]] = static_cast<std::int32_t>(at);
    time_.reserve(node_.size()), begin_.reserve(node_.size() + 1), edge_.reserve(graph.edge_count());
    for (const NodeIndex node : node_) {
      time_.push_back(cost.average_time(node));
      for (EdgeIndex edge = graph.out_begin(node); edge < graph.out_end(node); ++edge)
        edge_.push_back({cost.transfer_time(edge), position[graph.target(edge)]});
      begin_.push_back(edge_.size());
    }
  }

  Slices run() {
    Slices slices;
    for (DeviceIndex device = 0; device < devices_; ++device) {
      compute_levels();
      slices.primary.push_back(follow(heaviest()));
    }
    compute_levels();
    // Take all secondary paths by these levels, the longest first. Each path lowers the levels of
    // earlier nodes. But computing the levels again would be expensive, and the old ones remain
    // upper bounds.
    std::vector<std::pair<Nanoseconds, std::int32_t>> by_level;
    for (std::size_t at = node_.size(); at-- > 0;)
      if (level_[at] != kTaken) by_level.emplace_back(level_[at], static_cast<std::int32_t>(at));
    std::sort(by_level.begin(), by_level.end(), std::greater<>());
    for (const auto& [level, at] : by_level)
      if (level_[at] != kTaken) slices.secondary.push_back(follow(at));
    return slices;
  }

 private:
  struct Edge {
    Nanoseconds transfer;
    std::int32_t target;
  };
  // The level of a node that is already in a cluster. It stays negative if a transfer time is
  // added.
  static constexpr Nanoseconds kTaken = std::numeric_limits<Nanoseconds>::min() / 2;

  // Computes the bottom levels (longest paths to the end) of the nodes that are in no cluster yet.
  // Every edge counts with its transfer time.
  void compute_levels() {
    for (std::size_t at = 0; at < node_.size(); ++at) {
      if (level_[at] == kTaken) continue;
      Nanoseconds longest = 0;
      for (std::size_t edge = begin_[at]; edge < begin_[at + 1]; ++edge)
        longest = std::max(longest, level_[edge_[edge].target] + edge_[edge].transfer);
      level_[at] = longest + time_[at];
    }
  }

  // Returns the position of the highest level. If several are equal, it is the first one in
  // topological order.
  std::int32_t heaviest() const {
    std::int32_t best = kNone;
    for (std::size_t at = node_.size(); at-- > 0;)
      if (level_[at] != kTaken && (best == kNone || level_[at] > level_[best]))
        best = static_cast<std::int32_t>(at);
    return best;
  }

  // Takes the nodes of a path that begins at this position. The path always continues with the
  // consumer of the highest level that is in no cluster yet.
  std::vector<NodeIndex> follow(std::int32_t at) {
    std::vector<NodeIndex> path;
    while (at != kNone) {
      path.push_back(node_[at]);
      level_[at] = kTaken;
      std::int32_t next = kNone;
      Nanoseconds longest = -1;
      for (std::size_t edge = begin_[at]; edge < begin_[at + 1]; ++edge)
        if (const Nanoseconds length = edge_[edge].transfer + level_[edge_[edge].target]; length > longest)
          longest = length, next = edge_[edge].target;
      at = next;
    }
    return path;
  }

  const DeviceIndex devices_;
  const std::vector<NodeIndex> node_;  // node at each position of the order
  std::vector<Nanoseconds> level_;     // level of each node; kTaken if the node is in a cluster
  std::vector<Nanoseconds> time_;
  std::vector<std::size_t> begin_;
  std::vector<Edge> edge_;
};

}  // namespace

Slices slice(const CostModel& cost) { return Slicer(cost).run(); }

}  // namespace convoy::partition
