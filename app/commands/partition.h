// What `convoy partition` and `convoy simulate` share: the flags that describe the graph and the machine, and the output of
// a judged placement.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "partition/graph/task_graph.h"
#include "partition/simulation/report.h"
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

struct OutputFlags {
  std::string report, trace;
  bool json = false;

  void add_to(CLI::App& verb);
  void write_files(const std::string& title, const partition::ReportRows& rows,
                   const partition::CostModel& cost, const partition::Simulation& simulation) const;
};

// The rows that describe a judged placement: makespan, bound, ratio, speed-up, cut, peaks.
partition::ReportRows placement_rows(const partition::CostModel& cost,
                                     const partition::Simulation& simulation,
                                     partition::Nanoseconds one_device, double seconds);
void print_rows(const partition::ReportRows& rows);
nlohmann::json placement_summary(const partition::CostModel& cost, const partition::Simulation& simulation,
                                 partition::Nanoseconds one_device, double seconds);

}  // namespace convoy::app
