// Builds and checks the task graph: converts ids to indices, sorts edges into CSR rows and orders
// nodes topologically. If the graph has a cycle, the error message shows one.
#include "partition/graph/task_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <unordered_map>

#include "partition/graph/brief.h"

namespace convoy::partition {
namespace {

// The largest time, size, sum of all times and sum of all resident bytes. 1024 times as much still
// fits into 64 bits, so later sums cannot overflow.
constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max() / 1024;

std::string label_of(std::int64_t id, std::string_view name) {
  return name.empty() ? fmt::format("{}", id) : fmt::format("{} \"{}\"", id, brief(name));
}

}  // namespace

std::string_view TaskGraph::name(NodeIndex node) const {
  if (name_begin_.empty()) return {};
  return std::string_view(names_).substr(name_begin_[node], name_begin_[node + 1] - name_begin_[node]);
}

std::string TaskGraph::label(NodeIndex node) const { return label_of(id(node), name(node)); }

Nanoseconds TaskGraph::lower_bound(std::int32_t devices) const {
  if (time_divisor_ == 0) return 0;
  const Nanoseconds quanta = total_time_ / time_divisor_;
  return std::max(critical_path_, (quanta + devices - 1) / devices * time_divisor_);
}

void TaskGraphBuilder::reserve(std::size_t nodes, std::size_t edges) {
  graph_.id_.reserve(nodes), graph_.time_.reserve(nodes);
  graph_.resident_.reserve(nodes), graph_.output_.reserve(nodes);
  edges_.reserve(edges);
}

void TaskGraphBuilder::fail(std::int64_t position, std::string what) const {
  // Keep the message on one line, even if a name from a file contains line ends.
  std::replace_if(
      what.begin(), what.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
  if (position == kNone || !line_of_) throw std::runtime_error(fmt::format("{}: {}", where_, what));
  throw std::runtime_error(fmt::format("{}:{}: {}", where_, line_of_(position), what));
}

void TaskGraphBuilder::check_node(const TaskNode& node, Nanoseconds time, std::int64_t position) const {
  const auto label = [&] { return label_of(node.id, node.name); };
  const auto check = [&](const char* field, std::int64_t value) {
    if (value < 0 || value > kLargest)
      fail(position, fmt::format("node {}: {} is {}, expected 0 to {}", label(), field, value, kLargest));
  };
  check("time", time);
  check("resident_bytes", node.resident_bytes);
  check("output_bytes", node.output_bytes);
  if (node.parameter_bytes != kNone) check("parameter_bytes", node.parameter_bytes);
  if (node.pin < kNone)
    fail(position, fmt::format("node {}: pin is {}, expected a device", label(), node.pin));
  if (graph_.total_time_ > kLargest - time)
    fail(position, fmt::format("node {}: the sum of all times exceeds {} ns", label(), kLargest));
  if (graph_.total_resident_ > kLargest - node.resident_bytes)
    fail(position, fmt::format("node {}: the sum of all resident_bytes exceeds {}", label(), kLargest));
}

void TaskGraphBuilder::add_times(NodeIndex node, const TaskNode& task, std::int64_t position) {
  std::vector<std::string>& kinds = graph_.kinds_;
  for (const auto& [name, time] : task.times) {
    const auto found = std::ranges::find(kinds, name);
    const auto kind = static_cast<std::size_t>(found - kinds.begin());
    if (found == kinds.end()) kinds.push_back(name);
    for (auto at = kind_times_.rbegin(); at != kind_times_.rend() && at->node == node; ++at)
      if (at->kind == kind)
        fail(position, fmt::format("node {}: time of kind {} is given twice", task.id, brief(name)));
    kind_times_.push_back({node, kind, time});
  }
}

Nanoseconds TaskGraphBuilder::mean_time(const TaskNode& node, std::int64_t position) const {
  double sum = 0;
  for (const auto& [name, time] : node.times) {
    if (time < 0 || time > kLargest)
      fail(position, fmt::format("node {}: time of kind {} is {}, expected 0 to {}", node.id, brief(name),
                                 time, kLargest));
    sum += static_cast<double>(time);
  }
  return static_cast<Nanoseconds>(sum / static_cast<double>(node.times.size()));
}

// Copies the time of a node that has only one time to every kind of device.
void TaskGraphBuilder::spread_times() {
  TaskGraph& graph = graph_;
  if (graph.kinds_.empty()) return;
  const std::size_t kinds = graph.kinds_.size();
  graph.kind_time_.reserve(kinds * graph.time_.size());
  for (const Nanoseconds time : graph.time_) graph.kind_time_.insert(graph.kind_time_.end(), kinds, time);
  const auto row = [&](NodeIndex node) {
    return graph.kind_time_.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(node) * kinds);
  };
  for (const KindTime& one : kind_times_) std::fill_n(row(one.node), kinds, kNone);
  for (const KindTime& one : kind_times_) row(one.node)[static_cast<std::ptrdiff_t>(one.kind)] = one.time;
}

NodeIndex TaskGraphBuilder::add_node(const TaskNode& node, std::int64_t position) {
  const Nanoseconds time = node.times.empty() ? node.time : mean_time(node, position);
  check_node(node, time, position);
  TaskGraph& graph = graph_;
  const auto index = static_cast<NodeIndex>(graph.time_.size());
  if (index == std::numeric_limits<NodeIndex>::max()) fail(position, "more than 2^31 nodes");
  if (!node.times.empty()) add_times(index, node, position);
  graph.id_.push_back(node.id);
  graph.time_.push_back(time);
  graph.resident_.push_back(node.resident_bytes);
  graph.output_.push_back(node.output_bytes);
  graph.total_time_ += time;
  graph.time_divisor_ = std::gcd(graph.time_divisor_, time);
  graph.total_resident_ += node.resident_bytes;
  if (!node.name.empty() && graph.name_begin_.empty()) graph.name_begin_.assign(index + 1, 0);
  graph.names_ += node.name;
  if (graph.names_.size() > std::numeric_limits<std::uint32_t>::max()) fail(position, "names exceed 4 GiB");
  if (!graph.name_begin_.empty())
    graph.name_begin_.push_back(static_cast<std::uint32_t>(graph.names_.size()));
  if (node.pin != kNone || !graph.pin_.empty()) {
    graph.pin_.resize(index, kNone);
    graph.pin_.push_back(node.pin);
  }
  if (node.colocate != kNone || !graph.group_.empty()) {
    graph.group_.resize(index, kNone);
    graph.group_.push_back(node.colocate);
  }
  if (node.parameter_bytes != kNone || !graph.parameter_.empty()) {
    for (NodeIndex other = graph.parameter_.empty() ? 0 : index; other < index; ++other)
      graph.parameter_.push_back(graph.resident_[other]);
    graph.parameter_.push_back(node.parameter_bytes != kNone ? node.parameter_bytes : node.resident_bytes);
  }
  if (line_of_) node_position_.push_back(position);
  return index;
}

void TaskGraphBuilder::add_edge(std::int64_t from, std::int64_t to, Bytes bytes, std::int64_t position) {
  if (bytes < kOutputBytes || bytes > kLargest)
    fail(position, fmt::format("edge {} -> {}: bytes is {}, expected 0 to {}", from, to, bytes, kLargest));
  if (edges_.size() >= static_cast<std::size_t>(std::numeric_limits<EdgeIndex>::max()))
    fail(position, "more than 2^31 edges");
  edges_.push_back({from, to, bytes, position});
}

void TaskGraphBuilder::add_timed_edge(std::int64_t from, std::int64_t to, Nanoseconds transfer,
                                      std::int64_t position) {
  if (transfer < 0 || transfer > kLargest)
    fail(position,
         fmt::format("edge {} -> {}: cost is {} ns, expected 0 to {}", from, to, transfer, kLargest));
  if (transfers_.size() != edges_.size())
    fail(position, fmt::format("edge {} -> {}: cost on some edges, none on others", from, to));
  add_edge(from, to, 0, position);
  transfers_.push_back(transfer);
}

void TaskGraphBuilder::index_ids() {
  const TaskGraph& graph = graph_;
  const std::size_t count = graph.id_.size();
  const auto position = [&](NodeIndex node) { return node_position_.empty() ? kNone : node_position_[node]; };
  const auto repeated = [&](NodeIndex node) {
    fail(position(node), fmt::format("node {}: id used twice", graph.label(node)));
  };
  const auto [low, high] = std::minmax_element(graph.id_.begin(), graph.id_.end());
  if (count > 0 && *low >= 0 && static_cast<std::uint64_t>(*high) < 4 * count + 1024) {
    dense_.assign(static_cast<std::size_t>(*high) + 1, kNone);
    for (NodeIndex node = 0; node < graph.node_count(); ++node) {
      if (dense_[graph.id_[node]] != kNone) repeated(node);
      dense_[graph.id_[node]] = node;
    }
    return;
  }
  for (NodeIndex node = 0; node < graph.node_count(); ++node) sorted_ids_.emplace_back(graph.id_[node], node);
  std::sort(sorted_ids_.begin(), sorted_ids_.end());
  for (std::size_t i = 1; i < sorted_ids_.size(); ++i)
    if (sorted_ids_[i].first == sorted_ids_[i - 1].first) repeated(sorted_ids_[i].second);
}

NodeIndex TaskGraphBuilder::find(std::int64_t id) const {
  if (!dense_.empty()) return id >= 0 && id < std::ssize(dense_) ? dense_[id] : kNone;
  const auto found = std::lower_bound(sorted_ids_.begin(), sorted_ids_.end(), std::pair{id, NodeIndex{0}});
  return found != sorted_ids_.end() && found->first == id ? found->second : kNone;
}

void TaskGraphBuilder::resolve_edges() {
  for (RawEdge& edge : edges_) {
    const NodeIndex from = find(edge.from), to = find(edge.to);
    if (from == kNone || to == kNone)
      fail(edge.position, fmt::format("edge {} -> {}: no node has the id {}", edge.from, edge.to,
                                      from == kNone ? edge.from : edge.to));
    if (from == to)
      fail(edge.position, fmt::format("edge {0} -> {0}: a node that waits for itself", graph_.label(from)));
    edge.from = from, edge.to = to;
    if (edge.bytes == kOutputBytes) edge.bytes = graph_.output_[from];
  }
}

// Sorts the edges by producer (with a counting sort) and then by consumer. Then builds the
// in-edges.
void TaskGraphBuilder::sort_edges() {
  TaskGraph& graph = graph_;
  const std::size_t nodes = graph.time_.size(), count = edges_.size();
  std::vector<EdgeIndex>& begin = graph.out_begin_;
  begin.assign(nodes + 1, 0);
  for (const RawEdge& edge : edges_) ++begin[edge.from + 1];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<EdgeIndex> by_source(count), next(begin.begin(), begin.end() - 1);
  for (std::size_t i = 0; i < count; ++i) by_source[next[edges_[i].from]++] = static_cast<EdgeIndex>(i);
  graph.source_.resize(count), graph.target_.resize(count), graph.bytes_.resize(count);
  graph.transfer_.resize(transfers_.empty() ? 0 : count);
  graph.in_begin_.assign(nodes + 1, 0);
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    std::sort(by_source.begin() + begin[node], by_source.begin() + begin[node + 1],
              [&](EdgeIndex a, EdgeIndex b) {
                return edges_[a].to != edges_[b].to ? edges_[a].to < edges_[b].to : a < b;
              });
    for (EdgeIndex edge = begin[node]; edge < begin[node + 1]; ++edge) {
      const RawEdge& raw = edges_[by_source[edge]];
      graph.source_[edge] = node;
      graph.target_[edge] = static_cast<NodeIndex>(raw.to);
      if (edge > begin[node] && graph.target_[edge] == graph.target_[edge - 1])
        fail(raw.position,
             fmt::format("edge {} -> {}: given twice", graph.label(node), graph.label(graph.target_[edge])));
      graph.bytes_[edge] = raw.bytes;
      if (!transfers_.empty()) graph.transfer_[edge] = transfers_[by_source[edge]];
      ++graph.in_begin_[raw.to + 1];
    }
  }
  std::partial_sum(graph.in_begin_.begin(), graph.in_begin_.end(), graph.in_begin_.begin());
  graph.in_edge_.resize(count);
  next.assign(graph.in_begin_.begin(), graph.in_begin_.end() - 1);
  for (std::size_t edge = 0; edge < count; ++edge)
    graph.in_edge_[next[graph.target_[edge]]++] = static_cast<EdgeIndex>(edge);
}

void TaskGraphBuilder::order_nodes() {
  TaskGraph& graph = graph_;
  std::vector<EdgeIndex> waiting(graph.time_.size());
  std::vector<Nanoseconds> finish(graph.time_.size(), 0);
  graph.order_.reserve(graph.time_.size());
  for (NodeIndex node = 0; node < graph.node_count(); ++node)
    if ((waiting[node] = graph.in_degree(node)) == 0) graph.order_.push_back(node);
  for (std::size_t i = 0; i < graph.order_.size(); ++i) {
    const NodeIndex node = graph.order_[i];
    finish[node] += graph.time_[node];
    graph.critical_path_ = std::max(graph.critical_path_, finish[node]);
    for (const NodeIndex next : graph.successors(node)) {
      finish[next] = std::max(finish[next], finish[node]);
      if (--waiting[next] == 0) graph.order_.push_back(next);
    }
  }
  if (graph.order_.size() != graph.time_.size()) report_cycle(waiting);
}

// Throws an error that shows a cycle. Every node that the topological sort left over has a producer
// that was left over, too. So going from producer to producer must reach some node twice. The nodes
// between the two visits are a cycle.
void TaskGraphBuilder::report_cycle(const std::vector<EdgeIndex>& waiting) const {
  const TaskGraph& graph = graph_;
  NodeIndex node = 0;
  while (waiting[node] == 0) ++node;
  std::vector<NodeIndex> walk;
  std::unordered_map<NodeIndex, std::size_t> seen;
  while (seen.emplace(node, walk.size()).second) {
    walk.push_back(node);
    for (const EdgeIndex edge : graph.in_edges(node))
      if (waiting[graph.source(edge)] > 0) {
        node = graph.source(edge);
        break;
      }
  }
  walk.erase(walk.begin(), walk.begin() + static_cast<std::ptrdiff_t>(seen[node]));
  walk.push_back(node);
  std::reverse(walk.begin(), walk.end());
  constexpr std::size_t kShown = 12;
  std::string text;
  for (std::size_t i = 0; i < walk.size(); ++i) {
    if (walk.size() > kShown + 2 && i == kShown)
      text += fmt::format(" -> … {} more", walk.size() - kShown - 1);
    if (walk.size() > kShown + 2 && i >= kShown && i + 1 < walk.size()) continue;
    text += (i > 0 ? " -> " : "") + graph.label(walk[i]);
  }
  fail(node_position_.empty() ? kNone : node_position_[node], "cycle: " + text);
}

// Renumbers the groups from 0 in the order in which they occur. Throws if two nodes of a group have
// different pins.
void TaskGraphBuilder::renumber_groups() {
  TaskGraph& graph = graph_;
  graph.pin_.resize(graph.pin_.empty() ? 0 : graph.time_.size(), kNone);
  graph.group_.resize(graph.group_.empty() ? 0 : graph.time_.size(), kNone);
  if (graph.group_.empty()) return;
  std::unordered_map<std::int32_t, std::int32_t> number;
  std::vector<NodeIndex> pinned;  // for each group, one of its nodes that has a pin
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    std::int32_t& group = graph.group_[node];
    if (group == kNone) continue;
    group = number.emplace(group, static_cast<std::int32_t>(number.size())).first->second;
    pinned.resize(number.size(), kNone);
    if (graph.pin(node) == kNone) continue;
    NodeIndex& first = pinned[group];
    if (first == kNone) first = node;
    if (graph.pin(first) != graph.pin(node))
      fail(node_position_.empty() ? kNone : node_position_[node],
           fmt::format("node {}: pin is {}, but node {} of the same colocation group has pin {}",
                       graph.label(node), graph.pin(node), graph.label(first), graph.pin(first)));
  }
  graph.group_count_ = static_cast<std::int32_t>(number.size());
}

TaskGraph TaskGraphBuilder::build() {
  index_ids();
  if (!transfers_.empty() && transfers_.size() != edges_.size())
    fail(kNone, "cost on some edges, none on others");
  resolve_edges();
  sort_edges();
  edges_ = {}, transfers_ = {};
  order_nodes();
  renumber_groups();
  spread_times();
  TaskGraph result = std::move(graph_);
  const std::string where = std::move(where_);
  *this = TaskGraphBuilder(where);
  return result;
}

}  // namespace convoy::partition
