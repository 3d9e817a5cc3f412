// The model of a cluster: nodes of equal devices, links with a latency and a bandwidth (Hockney's
// α-β model), and the cost of an all-reduce over them. It is read from a topology file; measured
// all-reduces replace the model.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "app/compile/step_choices.h"

namespace convoy::app {

struct Link {
  double latency_us = 0;         // of one message
  double gbytes_per_second = 0;  // 10^9 bytes a second, one direction
};

struct DeviceRates {
  kernels::Backend backend = kernels::Backend::cuda;  // or cpu
  std::map<Precision, double> gflops;                 // rate of dense products
  double gbytes_per_second = 0;
  double launch_us = 0;  // the smallest time of an operation
};

// The mean of several measurements of one thing.
struct Mean {
  double sum = 0;
  int count = 0;
  void add(double value) { sum += value, ++count; }
  operator double() const { return sum / count; }
};

class Cluster {
 public:
  // Throw std::runtime_error naming file and field.
  static Cluster read(const std::string& topology_file);
  static Cluster parse(const std::string& json, const std::string& file);

  // Reads the output of `convoy bench collectives --json`: rows with "operation" ("all-reduce" or
  // "gradients"), "ranks", "bytes" and "microseconds", and rows with "operation" ("overlap"),
  // "ranks", "bytes", "operation_microseconds" and "overlap". Other lines are passed over. Rows of
  // one size are averaged.
  // Measured rank counts are interpolated between sizes. For other counts the link within a node is
  // fitted to all of its all-reduces, and the link between nodes to all that span nodes.
  void use_measurements(const std::string& file);
  void add_measurement(int ranks, double bytes, double us) { measured_[ranks][bytes].add(us); }
  void fit();

  // Returns the microseconds of an in-place all-reduce over the first `ranks` devices. Nodes are
  // filled one after the other.
  double all_reduce_us(double bytes, int ranks) const;
  // The same for gradients, which ranks of one node may sum in shared memory. A count that was not
  // measured keeps the ratio of gradients to all-reduces of the nearest measured count.
  double gradients_us(double bytes, int ranks) const;

  const std::string& name() const { return name_; }
  int devices_per_node() const { return devices_per_node_; }
  int nodes(int ranks) const { return (ranks + devices_per_node_ - 1) / devices_per_node_; }
  // Returns the share, 0 to 1, of the time of the gradients' all-reduce that concurrent operations
  // of `operation_us` microseconds hide. Long operations hide less, because NCCL's blocks occupy
  // multiprocessors until the end.
  //   1. ranks: measured for this count, else the next larger, else the largest measured one;
  //      without measurements the topology file's value
  //   2. bytes: the largest measured size that `bytes` reaches
  //   3. several nodes or no measured gradients: the smallest size, which NCCL always sums
  double overlap(double operation_us, double bytes, int ranks) const;
  const DeviceRates& device() const { return device_; }
  const Link& within() const { return within_; }
  std::vector<int> measured_ranks() const;  // counts with measured all-reduces, ascending

 private:
  double modelled_us(double bytes, int ranks) const;
  double within_us(double bytes, int ranks) const;
  // The share of a node's network that the ports of the devices on the emptiest node can use.
  double share_of_ports(int ranks) const;
  // Finds that count, else the next larger, else the largest that fits into a node; end() if there
  // is none.
  template <typename Values>
  auto nearest_within_a_node(const std::map<int, Values>& by_ranks, int ranks) const {
    const auto beyond = by_ranks.upper_bound(devices_per_node_);
    const auto found = by_ranks.lower_bound(ranks);
    if (found != by_ranks.end() && found->first <= devices_per_node_) return found;
    return beyond == by_ranks.begin() ? by_ranks.end() : std::prev(beyond);
  }

  std::string name_;
  int devices_per_node_ = 1, ports_ = 1;  // ports to the other nodes, "between_nodes": {"ports": ...}
  double call_us_ = 0, overlap_ = 1;
  Link within_, between_;  // between: one direction of a whole node
  DeviceRates device_;
  using Points = std::map<double, Mean>;
  std::map<int, Points> measured_, gradients_;  // ranks -> bytes -> microseconds
  std::map<int, std::map<double, Points>>
      overlaps_;  // ranks -> bytes -> overlap by microseconds of an operation
};

}  // namespace convoy::app
