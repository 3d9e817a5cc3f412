// The mapping of ParDNN (pardnn.h). It gives devices to the secondary clusters, which are paths of
// nodes, so that the load is balanced at all times.
#include <algorithm>
#include <numeric>

#include "partition/placement/pardnn.h"

namespace convoy::partition {
namespace {

// The work of one device over time. Time is divided into equal stretches. A Fenwick tree of the
// work in each stretch gives the sum over consecutive stretches quickly.
class LoadProfile {
 public:
  explicit LoadProfile(std::size_t stretches) : sums_(stretches + 1, 0) {}
  void add(std::size_t stretch, Nanoseconds work) {
    for (std::size_t i = stretch + 1; i < sums_.size(); i += i & (~i + 1)) sums_[i] += work;
  }
  Nanoseconds between(std::size_t first, std::size_t last) const { return until(last + 1) - until(first); }

 private:
  Nanoseconds until(std::size_t end) const {
    Nanoseconds sum = 0;
    for (std::size_t i = end; i > 0; i -= i & (~i + 1)) sum += sums_[i];
    return sum;
  }
  std::vector<Nanoseconds> sums_;
};

class Mapper {
 public:
  Mapper(const CostModel& cost, const Units& units)
      : cost_(cost),
        graph_(cost.graph()),
        given_(units),
        bottom_(bottom_levels(cost)),
        earliest_(graph_.node_count(), 0),
        length_(std::max<Nanoseconds>(1, *std::max_element(bottom_.begin(), bottom_.end()))),
        profile_(cost.device_count(), LoadProfile(kStretches)),
        saved_(cost.device_count()),
        total_(cost.device_count(), 0) {
    for (const NodeIndex node : graph_.topological_order())
      for (const NodeIndex next : graph_.successors(node))
        earliest_[next] = std::max(earliest_[next], earliest_[node] + cost.average_time(node));
    result_.devices = cost.device_count();
    result_.device_of.assign(graph_.node_count(), kNone);
  }

  Placement run(const Slices& slices) {
    for (DeviceIndex device = 0; device < cost_.device_count(); ++device) put(slices.primary[device], device);
    std::vector<Nanoseconds> work(slices.secondary.size(), 0);
    for (std::size_t i = 0; i < work.size(); ++i)
      for (const NodeIndex node : slices.secondary[i]) work[i] += cost_.average_time(node);
    std::vector<std::size_t> order(work.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return work[a] > work[b]; });
    for (const std::size_t i : order) put(slices.secondary[i], choose(slices.secondary[i]));
    return std::move(result_);
  }

 private:
  static constexpr std::size_t kStretches = 2048;

  std::size_t stretch(Nanoseconds time) const {
    const double share = static_cast<double>(time) / static_cast<double>(length_);
    return std::min(kStretches - 1, static_cast<std::size_t>(share * kStretches));
  }
  Nanoseconds latest(NodeIndex node) const { return length_ - bottom_[node]; }

  void put(const std::vector<NodeIndex>& cluster, DeviceIndex device) {
    for (const NodeIndex node : cluster) {
      if (given_.of_node(node) == kNone) given_.set_node(node, device);
      const DeviceIndex actual = given_.of_node(node);
      result_.device_of[node] = actual;
      profile_[actual].add(stretch(earliest_[node]), cost_.run_time(node, actual));
      total_[actual] += cost_.run_time(node, actual);
    }
  }

  // Returns the cost of an edge between two devices: the part of its transfer time that exceeds the
  // slack between its ends.
  Nanoseconds exposed(EdgeIndex edge) const {
    const NodeIndex from = graph_.source(edge), to = graph_.target(edge);
    const Nanoseconds slack = latest(to) - earliest_[from] - cost_.average_time(from);
    return std::max<Nanoseconds>(0, cost_.transfer_time(edge) - std::max<Nanoseconds>(0, slack));
  }

  // Returns the device with the least sum of two times: its load while the cluster can run, and the
  // exposed() communication of the cluster with other devices. Of several such devices, takes the
  // one with the least total work.
  DeviceIndex choose(const std::vector<NodeIndex>& cluster) {
    std::fill(saved_.begin(), saved_.end(), 0);
    const auto count = [&](EdgeIndex edge, NodeIndex other) {
      if (result_.device_of[other] != kNone) saved_[result_.device_of[other]] += exposed(edge);
    };
    Nanoseconds from = length_, until = 0;
    for (const NodeIndex node : cluster) {
      from = std::min(from, earliest_[node]), until = std::max(until, latest(node));
      for (const EdgeIndex edge : graph_.in_edges(node)) count(edge, graph_.source(edge));
      for (EdgeIndex edge = graph_.out_begin(node); edge < graph_.out_end(node); ++edge)
        count(edge, graph_.target(edge));
    }
    DeviceIndex best = 0;
    Nanoseconds least = std::numeric_limits<Nanoseconds>::max();
    for (DeviceIndex device = 0; device < cost_.device_count(); ++device) {
      const Nanoseconds load = profile_[device].between(stretch(from), stretch(until)) - saved_[device];
      if (load < least || (load == least && total_[device] < total_[best])) least = load, best = device;
    }
    return best;
  }

  const CostModel& cost_;
  const TaskGraph& graph_;
  UnitDevices given_;
  const std::vector<Nanoseconds> bottom_;
  // For each node, its earliest start on a machine with unlimited devices and free communication.
  std::vector<Nanoseconds> earliest_;
  const Nanoseconds length_;
  std::vector<LoadProfile> profile_;
  std::vector<Nanoseconds> saved_, total_;
  Placement result_;
};

}  // namespace

Placement map_clusters(const CostModel& cost, const Units& units, const Slices& slices) {
  if (cost.graph().node_count() == 0) return {cost.device_count(), {}, {}};
  return Mapper(cost, units).run(slices);
}

}  // namespace convoy::partition
