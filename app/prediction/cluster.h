// Models a cluster: nodes of equal devices, links with a latency and a bandwidth (Hockney's α-β
// model), and the time of an all-reduce over them. The model is read from a topology file. Measured
// all-reduces take precedence over the model.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "app/compile/step_choices.h"

namespace convoy::app {

struct ClusterLink {
  double latency_us = 0;  // latency of one message in microseconds
  // 10^9 bytes per second in one direction.
  double gbytes_per_second = 0;
};

struct DeviceRates {
  // Whether the devices are GPUs or the hosts' processors.
  kernels::Backend backend = kernels::Backend::cuda;
  // Rate of matrix products in 10^9 operations per second.
  std::map<Precision, double> gflops;
  double gbytes_per_second = 0;
  double launch_us = 0;  // the least time of an operation in microseconds
};

// The mean of several measurements of the same value.
struct Mean {
  double sum = 0;
  int count = 0;
  void add(double value) { sum += value, ++count; }
  operator double() const { return sum / count; }
};

class Cluster {
 public:
  // Read the topology file. Throw std::runtime_error that names file and field.
  static Cluster read(const std::string& topology_file);
  static Cluster parse(const std::string& json, const std::string& file);

  // Reads the output of `convoy bench collectives --json`. Uses two kinds of rows and ignores other
  // lines:
  //   - "operation" is "all-reduce" or "gradients"; with "ranks", "bytes" and "microseconds"
  //   - "operation" is "overlap"; with "ranks", "bytes", "operation_microseconds" and "overlap"
  // Rows of the same kind with equal numbers are averaged. For a number of ranks that was measured,
  // all_reduce_us() interpolates between the measured sizes. For other numbers of ranks it uses the
  // model. The model's link within a node is fitted to the all-reduces within one node. Its link
  // between nodes is fitted to the all-reduces over several nodes.
  void use_measurements(const std::string& file);
  void add_measurement(int ranks, double bytes, double us) { measured_[ranks][bytes].add(us); }
  void fit();

  // Returns the microseconds of an in-place all-reduce over the first `ranks` devices. Nodes are
  // filled one after the other.
  double all_reduce_us(double bytes, int ranks) const;
  // Returns the microseconds of an all-reduce of gradients. Ranks of one node may sum gradients in
  // shared memory, so such sums are measured separately. Without measurements within a node, or if
  // the ranks are on several nodes, returns all_reduce_us(). If this number of ranks was not
  // measured, takes the time of the next larger number of ranks that was measured within a node,
  // else of the largest such number. Scales this time by the ratio of all_reduce_us() of the two
  // numbers.
  double gradients_us(double bytes, int ranks) const;

  const std::string& name() const { return name_; }
  int devices_per_node() const { return devices_per_node_; }
  int nodes(int ranks) const { return (ranks + devices_per_node_ - 1) / devices_per_node_; }
  // Returns the share of a gradient all-reduce that is hidden by computation, from 0 to 1, if the
  // computation consists of operations of `operation_us` microseconds. Long operations hide less,
  // because NCCL's thread blocks keep multiprocessors from them until they end. If nothing was
  // measured, returns the topology file's value. Otherwise interpolates between the operation times
  // that were measured with these numbers of ranks and bytes:
  //   - The number of ranks is `ranks`, else the next larger measured one, else the largest. If
  //     the ranks are on one node, only numbers that were measured there count; if there are none,
  //     it is the largest of all.
  //   - If the ranks are on one node and gradients were measured, the number of bytes is the
  //     largest measured one up to `bytes`, because GPUs may sum large sizes there without NCCL.
  //     Otherwise it is the smallest measured one, which NCCL always sums.
  double overlap(double operation_us, double bytes, int ranks) const;
  const DeviceRates& device() const { return device_; }
  const ClusterLink& within() const { return within_; }
  // Returns the numbers of ranks for which all-reduces were measured, ascending.
  std::vector<int> measured_ranks() const;

 private:
  double modelled_us(double bytes, int ranks) const;
  double within_us(double bytes, int ranks) const;
  // Returns the part of a node's network bandwidth that an all-reduce can use, from 0 to 1. Each
  // rank can use only one of the node's network ports, so the node with the fewest ranks is the
  // limit.
  double share_of_ports(int ranks) const;
  // Finds the values for `ranks`, else for the next larger number of ranks, else for the largest.
  // Only numbers of ranks within one node count. Returns end() if there are none.
  template <typename Values>
  auto nearest_within_a_node(const std::map<int, Values>& by_ranks, int ranks) const {
    const auto beyond = by_ranks.upper_bound(devices_per_node_);
    const auto found = by_ranks.lower_bound(ranks);
    if (found != by_ranks.end() && found->first <= devices_per_node_) return found;
    return beyond == by_ranks.begin() ? by_ranks.end() : std::prev(beyond);
  }

  std::string name_;
  // ports_ is the number of network ports of a node: "ports" of "between_nodes" in the file.
  int devices_per_node_ = 1, ports_ = 1;
  double call_us_ = 0, overlap_ = 1;
  // The bandwidth of between_ is that of all ports of a node together, in one direction.
  ClusterLink within_, between_;
  DeviceRates device_;
  using Points = std::map<double, Mean>;
  // Measured microseconds of plain all-reduces, and of all-reduces of gradients (gradients_us()),
  // by the number of ranks and the number of bytes.
  std::map<int, Points> measured_, gradients_;
  // Measured overlap, by the number of ranks, the number of bytes, and an operation's microseconds.
  std::map<int, std::map<double, Points>> overlaps_;
};

}  // namespace convoy::app
