#include "partition/memory/live_cut.h"

#include <fmt/format.h>

#include <algorithm>

#include "partition/memory/overflow.h"

namespace convoy::partition {
namespace {

// Returns for each node how many bytes are live while it runs, if all nodes run on one device in
// topological order.
std::vector<Bytes> live_in_order(const TaskGraph& graph) {
  const auto order = graph.topological_order();
  std::vector<std::size_t> position(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) position[order[i]] = i;
  std::vector<Bytes> change(order.size() + 1, 0);
  for (std::size_t i = 0; i < order.size(); ++i) {
    std::size_t last = i;
    for (const NodeIndex next : graph.successors(order[i])) last = std::max(last, position[next]);
    change[i] += graph.output_bytes(order[i]);
    change[last + 1] -= graph.output_bytes(order[i]);
  }
  for (std::size_t i = 1; i < change.size(); ++i) change[i] += change[i - 1];
  change.pop_back();
  return change;
}

class CutFinder {
 public:
  explicit CutFinder(const CostModel& cost) : cost_(cost), graph_(cost.graph()) {}

  LiveCut run() {
    LiveCut best;
    for (const NodeIndex node : candidates()) {
      LiveCut cut = at(node);
      if (cut.bytes > best.bytes) best = std::move(cut);
    }
    return best;
  }

 private:
  std::vector<NodeIndex> candidates() const {
    constexpr std::size_t kHeaviest = 24, kSpread = 24;
    const auto order = graph_.topological_order();
    const std::vector<Bytes> live = live_in_order(graph_);
    std::vector<std::size_t> places(order.size());
    for (std::size_t i = 0; i < places.size(); ++i) places[i] = i;
    const std::size_t heaviest = std::min(kHeaviest, places.size());
    std::partial_sort(
        places.begin(), places.begin() + static_cast<std::ptrdiff_t>(heaviest), places.end(),
        [&](std::size_t a, std::size_t b) { return live[a] != live[b] ? live[a] > live[b] : a < b; });
    places.resize(heaviest);
    for (std::size_t i = 1; i <= kSpread && !order.empty(); ++i)
      places.push_back(order.size() * i / (kSpread + 1));
    std::vector<NodeIndex> nodes;
    for (const std::size_t place : places) nodes.push_back(order[place]);
    // Skip nodes with no duration. Their inputs may be freed before they write, so they prove
    // nothing.
    std::erase_if(nodes, [&](NodeIndex node) {
      for (DeviceIndex device = 0; device < cost_.device_count(); ++device)
        if (cost_.run_time(node, device) <= 0) return true;
      return false;
    });
    return nodes;
  }

  template <typename Neighbours>
  std::vector<bool> reached(NodeIndex from, const Neighbours& neighbours) const {
    std::vector<bool> seen(static_cast<std::size_t>(graph_.node_count()), false);
    std::vector<NodeIndex> stack{from};
    seen[from] = true;
    while (!stack.empty()) {
      const NodeIndex node = stack.back();
      stack.pop_back();
      neighbours(node, [&](NodeIndex next) {
        if (seen[next]) return;
        seen[next] = true;
        stack.push_back(next);
      });
    }
    return seen;
  }

  LiveCut at(NodeIndex node) const {
    const std::vector<bool> before = reached(node, [&](NodeIndex of, const auto& visit) {
      for (const EdgeIndex edge : graph_.in_edges(of)) visit(graph_.source(edge));
    });
    const std::vector<bool> after = reached(node, [&](NodeIndex of, const auto& visit) {
      for (const NodeIndex next : graph_.successors(of)) visit(next);
    });
    LiveCut cut{node, graph_.output_bytes(node), std::vector<Bytes>(before.size(), 0)};
    cut.kept[node] = graph_.output_bytes(node);
    for (NodeIndex producer = 0; producer < graph_.node_count(); ++producer) {
      if (!before[producer] || producer == node) continue;
      // It is certain only that one copy of the output is live. This may be the copy on a
      // consumer's device, which can be smaller than the output. So count the smaller size.
      Bytes kept = 0;
      for (EdgeIndex edge = graph_.out_begin(producer); edge < graph_.out_end(producer); ++edge)
        if (after[graph_.target(edge)])
          kept = std::max(kept, std::min(graph_.bytes(edge), graph_.output_bytes(producer)));
      cut.kept[producer] = kept;
      cut.bytes += kept;
    }
    return cut;
  }

  const CostModel& cost_;
  const TaskGraph& graph_;
};

Bytes all_limits(const Machine& machine) {
  Bytes sum = 0;
  for (DeviceIndex device = 0; device < machine.device_count(); ++device) {
    const Bytes limit = machine.device(device).memory_limit;
    if (limit > kUnlimited - sum) return kUnlimited;
    sum += limit;
  }
  return sum;
}

// Returns a topological order that keeps a layer together with its parameters. In it, the ancestors
// of the node `cut` come right before their first reader. All other nodes follow after `cut`.
std::vector<NodeIndex> near_readers(const TaskGraph& graph, NodeIndex cut) {
  std::vector<NodeIndex> order;
  // For each node, the index of the input to visit next.
  std::vector<std::size_t> next(static_cast<std::size_t>(graph.node_count()), 0);
  std::vector<bool> seen(next.size(), false);
  std::vector<NodeIndex> path;
  if (cut != kNone) path.push_back(cut), seen[cut] = true;
  while (!path.empty()) {
    const NodeIndex node = path.back();
    if (const auto inputs = graph.in_edges(node); next[node] < inputs.size()) {
      const NodeIndex input = graph.source(inputs[next[node]++]);
      if (!seen[input]) path.push_back(input), seen[input] = true;
      continue;
    }
    order.push_back(node);
    path.pop_back();
  }
  for (const NodeIndex node : graph.topological_order())
    if (!seen[node]) order.push_back(node);
  return order;
}

}  // namespace

LiveCut find_live_cut(const CostModel& cost) { return CutFinder(cost).run(); }

std::optional<std::string> live_certificate(const CostModel& cost, const LiveCut& cut) {
  const TaskGraph& graph = cost.graph();
  const Bytes limits = all_limits(cost.machine());
  if (cut.node == kNone || cut.bytes + graph.total_resident_bytes() <= limits) return std::nullopt;
  return fmt::format(
      "while node {} runs, {} bytes that nodes before it made for nodes after it are live, with {} resident "
      "bytes more than the {} bytes of {} devices",
      graph.label(cut.node), cut.bytes, graph.total_resident_bytes(), limits, cost.device_count());
}

Placement place_by_memory(const CostModel& cost, const Units& units, const LiveCut& cut) {
  const TaskGraph& graph = cost.graph();
  const DeviceIndex count = cost.device_count();
  UnitDevices devices(units);
  const auto weight = [&](NodeIndex node) {
    return static_cast<double>(graph.resident_bytes(node) + (cut.kept.empty() ? 0 : cut.kept[node]));
  };
  const auto limit = [&](DeviceIndex device) {
    return static_cast<double>(cost.machine().device(device).memory_limit);
  };
  double all = 0, limits = 0, done = 0;
  for (DeviceIndex device = 0; device < count; ++device) limits += limit(device);
  for (NodeIndex node = 0; node < graph.node_count(); ++node) all += weight(node);
  DeviceIndex current = 0;
  double until = limit(0) / limits * all;
  std::vector<double> read(static_cast<std::size_t>(count));
  for (const NodeIndex node : near_readers(graph, cut.node)) {
    const double bytes = weight(node);
    while (current + 1 < count && done + bytes / 2 > until) until += limit(++current) / limits * all;
    done += bytes;
    if (devices.of_node(node) != kNone) continue;
    DeviceIndex device = current;
    if (bytes == 0) {
      std::ranges::fill(read, 0);
      for (const EdgeIndex edge : graph.in_edges(node))
        read[devices.of_node(graph.source(edge))] += static_cast<double>(graph.bytes(edge));
      const auto most = std::ranges::max_element(read);
      if (*most > 0) device = static_cast<DeviceIndex>(most - read.begin());
    }
    devices.set_node(node, device);
  }
  Placement result{count, std::vector<DeviceIndex>(graph.node_count()), {}};
  for (NodeIndex node = 0; node < graph.node_count(); ++node) result.device_of[node] = devices.of_node(node);
  return result;
}

}  // namespace convoy::partition
