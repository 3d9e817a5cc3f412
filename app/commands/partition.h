// Prints a simulated placement, for `convoy partition` and `convoy simulate`.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "partition/simulation/placement_report.h"
#include "partition/simulation/simulator.h"

namespace convoy::app {

// The title above the output flags in --help.
inline constexpr const char* kOutputGroup = "Output";

struct OutputFlags {
  std::string report, trace;
  bool json = false;

  void add_to(CLI::App& verb);
  void write_files(const std::string& title, const partition::ReportRows& rows,
                   const partition::CostModel& cost, const partition::Simulation& simulation) const;
};

// Returns the rows of the result's table that show makespan, lower bound, ratio of the two,
// speed-up over one device, and cut (the transfers between devices). `one_device` is empty if nodes
// are pinned to several devices; then there is no speed-up.
partition::ReportRows placement_rows(const partition::CostModel& cost,
                                     const partition::Simulation& simulation,
                                     std::optional<partition::Nanoseconds> one_device, double seconds);
// Prints the given rows, then one row per device.
void print_rows(partition::ReportRows rows, const partition::CostModel& cost,
                const partition::Simulation& simulation);
nlohmann::json placement_summary(const partition::CostModel& cost, const partition::Simulation& simulation,
                                 std::optional<partition::Nanoseconds> one_device, double seconds);

}  // namespace convoy::app
