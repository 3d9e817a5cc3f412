// The flags that describe a task graph and the machine to place it on, for `convoy partition` and `convoy simulate`.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "partition/graph/task_graph.h"
#include "partition/simulation/simulator.h"

namespace convoy::app {

struct GraphAndMachineFlags {
  std::string graph;
  bool color_classes = false, contention = false;
  partition::DeviceIndex devices = 0, devices_per_node = 0;
  std::vector<std::int64_t> memory;  // one, or one a device
  std::vector<double> speeds;        // none, or one a device
  double latency_us = 25, bandwidth_gbps = 130, node_latency_us = 50, node_bandwidth_gbps = 25;

  void add_to(CLI::App& verb, bool devices_required);
  partition::TaskGraph read_graph() const;
  // Throws UsageError when lists do not match the device count.
  partition::Machine machine(partition::DeviceIndex device_count) const;
};

}  // namespace convoy::app
