// The task graph that the partitioner places on devices. Nodes have times and memory, edges have
// bytes.
//
// All quantities are 64-bit integers: times in nanoseconds, sizes in bytes. With integers,
// schedules are reproducible to the bit, and an incremental simulation can stop at the first times
// that did not change.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace convoy::partition {

using NodeIndex = std::int32_t;  // 0 … node_count()-1, in the order of add_node()
using EdgeIndex = std::int32_t;  // 0 … edge_count()-1, grouped by producer
using Nanoseconds = std::int64_t;
using Bytes = std::int64_t;

inline constexpr std::int32_t kNone = -1;

struct TaskNode {
  std::int64_t id = 0;
  std::string name;  // name of the node; may be empty
  Nanoseconds time = 0;
  // The times of the node on each kind of device, if they differ. If set, `time` is ignored, and
  // the mean of these times is the node's time.
  std::vector<std::pair<std::string, Nanoseconds>> times;
  // Bytes that stay on the device: parameters, gradients and optimizer state.
  Bytes resident_bytes = 0;
  // Bytes that the replicas of a pipeline stage exchange for this node; kNone: as resident_bytes.
  Bytes parameter_bytes = kNone;
  // Bytes of the node's output. They are in memory from the node's start to the end of its last
  // consumer.
  Bytes output_bytes = 0;
  std::int32_t pin = kNone;       // number of the device on which the node must run; kNone: any
  std::int32_t colocate = kNone;  // group of nodes that must share one device; kNone: none
};

// A task graph, which cannot be changed. Edges are sorted by producer and then by consumer. The
// in-edges of a node are stored as indices of edges.
class TaskGraph {
 public:
  NodeIndex node_count() const { return static_cast<NodeIndex>(time_.size()); }
  EdgeIndex edge_count() const { return static_cast<EdgeIndex>(target_.size()); }

  std::int64_t id(NodeIndex node) const { return id_[node]; }
  std::string_view name(NodeIndex node) const;
  std::string label(NodeIndex node) const;  // for messages: `7 "conv1"`, or `7` without a name
  Nanoseconds time(NodeIndex node) const { return time_[node]; }
  // The kinds of devices that occur in TaskNode::times. Most graphs have none.
  const std::vector<std::string>& kinds() const { return kinds_; }
  // Returns the time of a node on a device of kinds()[kind]; kNone if the node has none for this
  // kind.
  Nanoseconds time(NodeIndex node, std::size_t kind) const {
    return kind_time_[static_cast<std::size_t>(node) * kinds_.size() + kind];
  }
  Bytes resident_bytes(NodeIndex node) const { return resident_[node]; }
  Bytes parameter_bytes(NodeIndex node) const {
    return parameter_.empty() ? resident_[node] : parameter_[node];
  }
  Bytes output_bytes(NodeIndex node) const { return output_[node]; }
  std::int32_t pin(NodeIndex node) const { return pin_.empty() ? kNone : pin_[node]; }
  // Returns the colocation group of a node, from 0 to group_count() - 1; kNone if it is in no
  // group.
  std::int32_t group(NodeIndex node) const { return group_.empty() ? kNone : group_[node]; }
  std::int32_t group_count() const { return group_count_; }
  bool constrained() const { return !pin_.empty() || group_count_ > 0; }

  EdgeIndex out_begin(NodeIndex node) const { return out_begin_[node]; }
  EdgeIndex out_end(NodeIndex node) const { return out_begin_[node + 1]; }
  EdgeIndex out_degree(NodeIndex node) const { return out_end(node) - out_begin(node); }
  EdgeIndex in_degree(NodeIndex node) const { return in_begin_[node + 1] - in_begin_[node]; }
  NodeIndex source(EdgeIndex edge) const { return source_[edge]; }
  NodeIndex target(EdgeIndex edge) const { return target_[edge]; }
  Bytes bytes(EdgeIndex edge) const { return bytes_[edge]; }
  std::span<const NodeIndex> successors(NodeIndex node) const {
    return {target_.data() + out_begin(node), static_cast<std::size_t>(out_degree(node))};
  }
  std::span<const EdgeIndex> in_edges(NodeIndex node) const {
    return {in_edge_.data() + in_begin_[node], static_cast<std::size_t>(in_degree(node))};
  }

  // Returns whether the edges have transfer times instead of bytes, as in Microsoft's files. The
  // model of the machine then adds only its latency.
  bool has_transfer_times() const { return !transfer_.empty(); }
  Nanoseconds transfer_time(EdgeIndex edge) const { return transfer_[edge]; }

  // Properties of the machine that Microsoft's and Piper's files describe: memory per device,
  // number of devices, bandwidth of their links, and micro-batches per batch. 0 if the file does
  // not say.
  Bytes device_memory() const { return device_memory_; }
  std::int32_t device_count() const { return device_count_; }
  double bytes_per_ns() const { return bytes_per_ns_; }
  std::int64_t micro_batches() const { return micro_batches_; }

  // All nodes in topological order, from Kahn's algorithm with a queue. A node enters the queue
  // when its last producer leaves it. Nodes that enter at the same time do so by ascending index.
  std::span<const NodeIndex> topological_order() const { return order_; }
  Nanoseconds total_time() const { return total_time_; }
  // The greatest common divisor of all times; 0 if all times are 0. The busy time of a device is a
  // multiple of this divisor. So a lower bound may be rounded up to a multiple of the divisor.
  Nanoseconds time_divisor() const { return time_divisor_; }
  Bytes total_resident_bytes() const { return total_resident_; }

  // The length of the longest path, counting only the times of nodes. On devices of speed 1 no
  // schedule is shorter.
  Nanoseconds critical_path() const { return critical_path_; }
  // Returns a lower bound on the length of schedules: max(critical path, total time / devices),
  // rounded up to a multiple of time_divisor(). Published tables quote this bound.
  Nanoseconds lower_bound(std::int32_t devices) const;

 private:
  friend class TaskGraphBuilder;
  std::vector<std::int64_t> id_;
  std::vector<std::uint32_t> name_begin_;  // empty if no node has a name
  std::string names_;
  std::vector<Nanoseconds> time_;
  std::vector<std::string> kinds_;
  std::vector<Nanoseconds> kind_time_;  // time of a node by kind of device: [node][kind]
  std::vector<Bytes> resident_, output_, parameter_;
  std::vector<std::int32_t> pin_, group_;
  std::vector<EdgeIndex> out_begin_, in_begin_, in_edge_;
  std::vector<NodeIndex> source_, target_, order_;
  std::vector<Bytes> bytes_;
  std::vector<Nanoseconds> transfer_;
  std::int32_t group_count_ = 0;
  Nanoseconds total_time_ = 0, time_divisor_ = 0, critical_path_ = 0;
  Bytes total_resident_ = 0, device_memory_ = 0;
  std::int32_t device_count_ = 0;
  double bytes_per_ns_ = 0;
  std::int64_t micro_batches_ = 0;
};

// Collects nodes and edges, then checks and stores them. Every error is a std::runtime_error whose
// text starts with `where` (the name of a file) and names the node and the field. It names the
// line, if add_node() or add_edge() was given a position.
class TaskGraphBuilder {
 public:
  explicit TaskGraphBuilder(std::string where = "graph") : where_(std::move(where)) {}

  void reserve(std::size_t nodes, std::size_t edges);
  // `position` is the position of the node in its file. If there is an error, `line_of` converts it
  // to a line number.
  NodeIndex add_node(const TaskNode& node, std::int64_t position = kNone);
  // Adds an edge between the nodes with these ids. The nodes may be added later. With kOutputBytes
  // the edge moves the whole output of its producer.
  static constexpr Bytes kOutputBytes = -1;
  void add_edge(std::int64_t from, std::int64_t to, Bytes bytes = kOutputBytes,
                std::int64_t position = kNone);
  // Adds an edge with a transfer time (has_transfer_times()). In a graph either all edges or none
  // must have a transfer time.
  void add_timed_edge(std::int64_t from, std::int64_t to, Nanoseconds transfer,
                      std::int64_t position = kNone);
  void set_device_memory(Bytes bytes) { graph_.device_memory_ = bytes; }
  void set_device_count(std::int32_t count) { graph_.device_count_ = count; }
  void set_bytes_per_ns(double bytes) { graph_.bytes_per_ns_ = bytes; }
  void set_micro_batches(std::int64_t count) { graph_.micro_batches_ = count; }
  void set_line_of(std::function<std::int64_t(std::int64_t)> line_of) { line_of_ = std::move(line_of); }

  // Checks ids and edges and returns the graph. If the graph has cycles, the error message shows
  // one of them. The builder is empty afterwards.
  TaskGraph build();
  [[noreturn]] void fail(std::int64_t position, std::string what) const;

 private:
  struct RawEdge {
    std::int64_t from, to;
    Bytes bytes;
    std::int64_t position;
  };
  void index_ids();
  NodeIndex find(std::int64_t id) const;
  void resolve_edges();
  void sort_edges();
  void order_nodes();
  [[noreturn]] void report_cycle(const std::vector<EdgeIndex>& waiting) const;
  void renumber_groups();
  void add_times(NodeIndex node, const TaskNode& task, std::int64_t position);
  void spread_times();
  void check_node(const TaskNode& node, Nanoseconds time, std::int64_t position) const;
  Nanoseconds mean_time(const TaskNode& node, std::int64_t position) const;

  std::string where_;
  TaskGraph graph_;
  std::vector<RawEdge> edges_;
  std::vector<Nanoseconds> transfers_;
  struct KindTime {
    NodeIndex node;
    std::size_t kind;
    Nanoseconds time;
  };
  std::vector<KindTime> kind_times_;
  std::vector<std::int64_t> node_position_;
  std::function<std::int64_t(std::int64_t)> line_of_;
  // The node of each id, if the ids are dense (few numbers below the largest id are unused).
  std::vector<NodeIndex> dense_;
  // Pairs of id and node, sorted by id, if the ids are not dense.
  std::vector<std::pair<std::int64_t, NodeIndex>> sorted_ids_;
  bool any_name_ = false, any_pin_ = false, any_group_ = false;
};

}  // namespace convoy::partition
