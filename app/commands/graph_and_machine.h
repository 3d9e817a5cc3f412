// The flags that describe a task graph and the machine to place it on.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "partition/graph/task_graph.h"
#include "partition/simulation/simulator.h"

namespace convoy::app {

struct GraphAndMachineFlags {
  std::string graph, topology, profile;
  bool color_classes = false, contention = false;
  partition::DeviceIndex devices = 0, devices_per_node = 0;
  std::vector<std::int64_t> memory;  // in bytes: one value for all devices, or one per device
  std::vector<double> speeds;        // empty, or one value per device
  double latency_us = 25, bandwidth_gbps = 130, node_latency_us = 50, node_bandwidth_gbps = 25;

  std::vector<const CLI::Option*> link_flags, node_flags;
  const CLI::Option* bandwidth_flag = nullptr;

  void add_to(CLI::App& verb);
  // Throws UsageError if a flag gives a value that the file of --topology gives, too, or if it
  // describes links between nodes and there is only one node.
  void check_links() const;
  partition::TaskGraph read_graph() const;
  // Returns the value of --devices. Without this flag it returns the count in the file of
  // --topology, or else in the graph's file. Throws UsageError if none of them gives a count.
  partition::DeviceIndex device_count(const partition::TaskGraph& graph) const;
  // Returns the machine. The memory limit of a device comes from --memory, else from the topology,
  // else from the graph's file. Throws UsageError if a list does not have one value per device.
  partition::Machine machine(const partition::TaskGraph& graph, partition::DeviceIndex device_count) const;

 private:
  void check_kinds(const partition::TaskGraph& graph, const partition::Machine& machine) const;
};

}  // namespace convoy::app
