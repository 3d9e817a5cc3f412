// The task graph that the partitioner places: nodes with time and memory, edges with bytes, stored
// compactly.
//
// Quantities are 64-bit integers throughout: times in nanoseconds, sizes in bytes. Integers make a
// schedule reproducible to the bit and let an incremental re-simulation stop where nothing changed.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace convoy::partition {

using NodeIndex = std::int32_t;  // 0 … node_count()-1, in the order of the file
using EdgeIndex = std::int32_t;  // 0 … edge_count()-1, grouped by producer
using Nanoseconds = std::int64_t;
using Bytes = std::int64_t;

inline constexpr std::int32_t kNone = -1;

struct TaskNode {
  std::int64_t id = 0;
  std::string name;  // may be empty
  Nanoseconds time = 0;
  // Times by the name of a kind of device, for a node that does not take the same time on all of
  // them. If there are any, `time` is ignored, and the graph's time is their mean.
  std::vector<std::pair<std::string, Nanoseconds>> times;
  Bytes resident_bytes = 0;       // on its device for good: parameters, gradients, optimizer state
  Bytes parameter_bytes = kNone;  // what replicas of a pipeline's stage exchange; kNone: resident_bytes
  Bytes output_bytes = 0;         // live from the node's start to the last consumer's end
  std::int32_t pin = kNone;       // the device it must be on
  std::int32_t colocate = kNone;  // nodes of one group share a device
};

// Immutable. Out-edges of a node are contiguous and sorted by consumer; in-edges refer to the same
// indices.
class TaskGraph {
 public:
  NodeIndex node_count() const { return static_cast<NodeIndex>(time_.size()); }
  EdgeIndex edge_count() const { return static_cast<EdgeIndex>(target_.size()); }

  std::int64_t id(NodeIndex node) const { return id_[node]; }
  std::string_view name(NodeIndex node) const;
  std::string label(NodeIndex node) const;  // for messages: `7 "conv1"`, `7` without a name; briefly
  Nanoseconds time(NodeIndex node) const { return time_[node]; }
  // Names the kinds of devices that any node has a time for. Most graphs have none.
  const std::vector<std::string>& kinds() const { return kinds_; }
  // The time on a device of that kind; kNone if the node has none for it.
  Nanoseconds time(NodeIndex node, std::size_t kind) const {
    return kind_time_[static_cast<std::size_t>(node) * kinds_.size() + kind];
  }
  Bytes resident_bytes(NodeIndex node) const { return resident_[node]; }
  Bytes parameter_bytes(NodeIndex node) const {
    return parameter_.empty() ? resident_[node] : parameter_[node];
  }
  Bytes output_bytes(NodeIndex node) const { return output_[node]; }
  std::int32_t pin(NodeIndex node) const { return pin_.empty() ? kNone : pin_[node]; }
  // Groups are numbered 0 … group_count()-1; kNone for a node that is in none.
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

  // Microsoft's files give the time of a transfer instead of its bytes; a machine then adds its
  // latency only.
  bool has_transfer_times() const { return !transfer_.empty(); }
  Nanoseconds transfer_time(EdgeIndex edge) const { return transfer_[edge]; }

  // The machine that the file describes, as Microsoft's and Piper's do: the memory of a device, the
  // number of devices, their links, and the micro-batches of a batch. 0: the file does not say.
  Bytes device_memory() const { return device_memory_; }
  std::int32_t device_count() const { return device_count_; }
  double bytes_per_ns() const { return bytes_per_ns_; }
  std::int64_t micro_batches() const { return micro_batches_; }

  std::span<const NodeIndex> topological_order() const { return order_; }  // by Kahn, ties by index
  Nanoseconds total_time() const { return total_time_; }
  // The greatest common divisor of all times: what a device is busy is a multiple of it. 0 when
  // every time is 0.
  Nanoseconds time_divisor() const { return time_divisor_; }
  Bytes total_resident_bytes() const { return total_resident_; }

  // The longest path by node times alone, in nanoseconds: no schedule on unit-speed devices is
  // shorter.
  Nanoseconds critical_path() const { return critical_path_; }
  // max(critical path, total time / devices), the bound that the tables quote, rounded up to what
  // sums of times can reach.
  Nanoseconds lower_bound(std::int32_t devices) const;

 private:
  friend class TaskGraphBuilder;
  std::vector<std::int64_t> id_;
  std::vector<std::uint32_t> name_begin_;  // empty when no node has a name
  std::string names_;
  std::vector<Nanoseconds> time_;
  std::vector<std::string> kinds_;
  std::vector<Nanoseconds> kind_time_;  // [node][kind]
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
// text starts with `where` (a file's name), and names the line (where one was given), the node and
// the field.
class TaskGraphBuilder {
 public:
  explicit TaskGraphBuilder(std::string where = "graph") : where_(std::move(where)) {}

  void reserve(std::size_t nodes, std::size_t edges);
  // `position` is anything that `line_of` can turn into a line number when an error must name one.
  NodeIndex add_node(const TaskNode& node, std::int64_t position = kNone);
  // Edges name ids, which may come later. bytes = kOutputBytes means the producer's output.
  static constexpr Bytes kOutputBytes = -1;
  void add_edge(std::int64_t from, std::int64_t to, Bytes bytes = kOutputBytes,
                std::int64_t position = kNone);
  // All edges carry a transfer time, or none does.
  void add_timed_edge(std::int64_t from, std::int64_t to, Bytes bytes, Nanoseconds transfer,
                      std::int64_t position = kNone);
  void set_device_memory(Bytes bytes) { graph_.device_memory_ = bytes; }
  void set_device_count(std::int32_t count) { graph_.device_count_ = count; }
  void set_bytes_per_ns(double bytes) { graph_.bytes_per_ns_ = bytes; }
  void set_micro_batches(std::int64_t count) { graph_.micro_batches_ = count; }
  void set_line_of(std::function<std::int64_t(std::int64_t)> line_of) { line_of_ = std::move(line_of); }

  // Unknown and repeated ids, duplicate edges and cycles (one is printed) end here. Leaves the
  // builder empty.
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
  std::vector<NodeIndex> dense_;                                // id -> node when ids are dense
  std::vector<std::pair<std::int64_t, NodeIndex>> sorted_ids_;  // otherwise
  bool any_name_ = false, any_pin_ = false, any_group_ = false;
};

}  // namespace convoy::partition
