// A cluster as the prediction sees it: nodes of equal devices, links with a latency and a bandwidth (Hockney's α-β
// model), and what an all-reduce over them costs. Read from a topology file; measured all-reduces take the place of the
// model where there are some.
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
  std::map<Precision, double> gflops;                 // that dense products reach
  double gbytes_per_second = 0;
  double launch_us = 0;  // the least that an operation costs
};

// Of several measurements of one thing.
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

  // Lines of JSON as `convoy bench collectives --json` prints them: "operation" ("all-reduce" or "gradients"), "ranks", "bytes",
  // "microseconds", and "operation" ("overlap"), "ranks", "bytes", "operation_microseconds", "overlap"; other lines are
  // passed over; rows of one size are their mean. Rank counts that were measured are interpolated between their sizes; for
  // the other counts the link within a node is fitted to all of its all-reduces, the one between nodes to all that span them.
  void use_measurements(const std::string& file);
  void add_measurement(int ranks, double bytes, double us) { measured_[ranks][bytes].add(us); }
  void fit();

  // Microseconds of an all-reduce, in place, over the first `ranks` devices; nodes are filled one after the other.
  double all_reduce_us(double bytes, int ranks) const;
  // The same of gradients, for which the ranks of a node may have a way of their own: counts that were not measured are to
  // the nearest that was as their all-reduces are.
  double gradients_us(double bytes, int ranks) const;

  const std::string& name() const { return name_; }
  int devices_per_node() const { return devices_per_node_; }
  int nodes(int ranks) const { return (ranks + devices_per_node_ - 1) / devices_per_node_; }
  // Share of the time of gradients' all-reduce that computation beside it, in operations of `operation_us`, does not lose:
  // where NCCL's blocks hold some multiprocessors, longer operations lose more, as their blocks stay where they are. As
  // measured for that many ranks, else for the next larger or the largest count that was measured, else the topology
  // file's; of the sizes measured the largest that `bytes` reaches, over several nodes the least, which is NCCL's everywhere,
  // as it is where no gradients were measured.
  double overlap(double operation_us, double bytes, int ranks) const;
  const DeviceRates& device() const { return device_; }
  const Link& within() const { return within_; }
  std::vector<int> measured_ranks() const;  // counts of which there are measured all-reduces, ascending

 private:
  double modelled_us(double bytes, int ranks) const;
  double within_us(double bytes, int ranks) const;
  // Of a node's network, what the devices on the emptiest node have ports for.
  double share_of_ports(int ranks) const;
  // That count, else the next larger, else the largest that a node has room for; the end where there is none.
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
