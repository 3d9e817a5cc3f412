// The machine on which a task graph is placed. Devices have speed and memory. The links between
// devices have latency and bandwidth.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "partition/graph/task_graph.h"

namespace convoy::partition {

using DeviceIndex = std::int32_t;
inline constexpr DeviceIndex kMostDevices = 4096;  // the most devices in a file or an option
inline constexpr Bytes kUnlimited = std::numeric_limits<Bytes>::max();

struct Device {
  Bytes memory_limit = kUnlimited;
  double speed = 1;  // a node with time t runs for t / speed
  std::string kind;  // selects times in TaskNode::times; may be empty
};

// A transfer of b bytes arrives latency + b / bytes_per_ns nanoseconds after its start. 1 byte/ns
// is 1 GB/s.
struct Link {
  Nanoseconds latency = 0;
  double bytes_per_ns = 1;
};

class Machine {
 public:
  // Returns a machine of equal devices with the same link between each pair.
  static Machine uniform(DeviceIndex devices, Link link, Bytes memory_limit = kUnlimited);
  // Returns a machine of `nodes` hosts with `devices_per_node` equal devices each. `inside` is the
  // link between devices of one host (NVLink), `between` is the link between hosts (the network).
  static Machine cluster(DeviceIndex nodes, DeviceIndex devices_per_node, Link inside, Link between,
                         Bytes memory_limit = kUnlimited);

  // Returns a machine of these devices. links[from * devices + to] is the link between two devices.
  // Entries from a device to itself are ignored.
  static Machine of(std::vector<Device> devices, std::vector<Link> links);

  DeviceIndex device_count() const { return static_cast<DeviceIndex>(devices_.size()); }
  const Device& device(DeviceIndex device) const { return devices_[device]; }
  Device& device(DeviceIndex device) { return devices_[device]; }
  const Link& link(DeviceIndex from, DeviceIndex to) const {
    return links_[static_cast<std::size_t>(from) * devices_.size() + to];
  }
  void set_link(DeviceIndex from, DeviceIndex to, Link link);

  // With contention, each device sends one tensor at a time and receives one at a time, in the
  // order of requests. Without contention, transfers never wait.
  bool contention() const { return contention_; }
  void set_contention(bool contention) { contention_ = contention; }

  bool same_speeds() const;
  bool same_links() const { return same_links_; }
  bool limited() const;

 private:
  void compare_links();

  std::vector<Device> devices_;
  std::vector<Link> links_;  // link between two devices: [from][to]
  bool contention_ = false, same_links_ = true;
};

// The costs of the nodes and edges of a graph on a machine. Graph and machine must live longer than
// this object.
class CostModel {
 public:
  // Throws std::runtime_error if a node has no time for a device's kind. Throws also if the sum of
  // all times and transfers, on the slowest devices and links, does not fit into 64 bits.
  CostModel(const TaskGraph& graph, const Machine& machine);

  const TaskGraph& graph() const { return graph_; }
  const Machine& machine() const { return machine_; }
  DeviceIndex device_count() const { return machine_.device_count(); }
  // Returns whether every node takes the same time on every device.
  bool same_speeds() const { return same_speeds_; }
  bool uniform() const { return same_speeds_ && machine_.same_links(); }
  // Returns the average speed of the device for the graph's nodes. With speed 1, nodes take the
  // times that the graph gives.
  double speed(DeviceIndex device) const { return speed_[device]; }

  Nanoseconds run_time(NodeIndex node, DeviceIndex device) const {
    return same_speeds_ ? graph_.time(node) : slow_run_time(node, device);
  }
  // Returns the time from the start of a transfer to its arrival; 0 within one device.
  Nanoseconds transfer_time(EdgeIndex edge, DeviceIndex from, DeviceIndex to) const {
    return from == to ? 0 : different_transfer_time(edge, from, to);
  }
  // Returns the edge's transfer time between two devices. If links differ, this is the average over
  // all pairs of devices.
  Nanoseconds transfer_time(EdgeIndex edge) const { return average_transfer_[edge]; }
  // Returns the average transfer times of all out-edges of a node.
  std::span<const Nanoseconds> transfer_times(NodeIndex node) const {
    return {average_transfer_.data() + graph_.out_begin(node),
            static_cast<std::size_t>(graph_.out_degree(node))};
  }
  // Returns the time for which a transfer occupies the links under contention.
  Nanoseconds link_time(EdgeIndex edge, DeviceIndex from, DeviceIndex to) const {
    return different_transfer_time(edge, from, to) - machine_.link(from, to).latency;
  }
  // Returns the node's average time over all devices.
  Nanoseconds average_time(NodeIndex node) const {
    if (same_speeds_) return graph_.time(node);
    if (!average_time_.empty()) return average_time_[node];
    return static_cast<Nanoseconds>(static_cast<double>(graph_.time(node)) * average_slowness_);
  }
  // Returns whether all out-edges of the node move the same number of bytes.
  bool one_size(NodeIndex node) const { return all_one_size_ || one_size_[node]; }
  // Returns whether no transfer changes the time of another. This requires that there is no
  // contention and that all out-edges of a node move the same tensor. A search that recomputes only
  // changed times is then exact.
  bool transfers_independent() const { return all_one_size_ && !machine_.contention(); }

 private:
  void check_sum() const;
  void match_kinds();
  Nanoseconds slow_run_time(NodeIndex node, DeviceIndex device) const {
    const Nanoseconds time = kind_.empty() ? graph_.time(node) : graph_.time(node, kind_[device]);
    return static_cast<Nanoseconds>(static_cast<double>(time) / machine_.device(device).speed + 0.5);
  }
  Nanoseconds different_transfer_time(EdgeIndex edge, DeviceIndex from, DeviceIndex to) const {
    return machine_.same_links() ? average_transfer_[edge]
                                 : linked_transfer_time(edge, machine_.link(from, to));
  }
  Nanoseconds linked_transfer_time(EdgeIndex edge, const Link& link) const {
    return link.latency +
           (graph_.has_transfer_times()
                ? graph_.transfer_time(edge)
                : static_cast<Nanoseconds>(static_cast<double>(graph_.bytes(edge)) / link.bytes_per_ns));
  }

  const TaskGraph& graph_;
  const Machine& machine_;
  bool same_speeds_, all_one_size_ = true;
  double average_slowness_ = 1;
  std::vector<double> speed_;      // speed() of each device
  std::vector<std::size_t> kind_;  // kind of each device, if the graph has times by kind
  // Average time of each node, if the graph has times by kind.
  std::vector<Nanoseconds> average_time_;
  std::vector<Nanoseconds> average_transfer_;  // average transfer time of each edge
  std::vector<bool> one_size_;
};

// Returns a lower bound on the makespan. It is the largest of communication_bound(), the critical
// path without transfers on the fastest devices, and the total work divided by the sum of speeds.
Nanoseconds makespan_lower_bound(const CostModel& cost);

}  // namespace convoy::partition
