// Writes the HTML report of a placement.
#include "partition/simulation/placement_report.h"

#include <algorithm>
#include <array>

namespace convoy::partition {
namespace {

constexpr double kLane = TimelinePage::kLane, kLinkLane = 8;

class Page {
 public:
  Page(const CostModel& cost, const Simulation& simulation)
      : cost_(cost), graph_(cost.graph()), simulation_(simulation), page_(simulation.makespan) {}

  std::string build(const std::string& title, const ReportRows& rows) {
    page_.begin(title, rows);
    device_table();
    legend();
    return timeline();
  }

 private:
  void device_table() {
    page_.put("<table><tr><th>device<th>nodes<th>busy<th>exposed transfer<th>peak MiB<th>limit MiB");
    for (std::size_t device = 0; device < simulation_.use.size(); ++device) {
      const DeviceUtilisation& use = simulation_.use[device];
      const Bytes limit = cost_.machine().device(static_cast<DeviceIndex>(device)).memory_limit;
      const double whole = std::max(1.0, static_cast<double>(simulation_.makespan)) / 100;
      page_.put(
          "<tr><td>{}<td class=\"n\">{}<td class=\"n\">{:.1f} %<td class=\"n\">{:.1f} %<td "
          "class=\"n\">{:.1f}<td class=\"n\">{}",
          device, use.nodes, static_cast<double>(use.busy) / whole,
          static_cast<double>(use.exposed_transfer) / whole, mebibytes(use.peak_bytes),
          limit == kUnlimited ? std::string("none") : fmt::format("{:.1f}", mebibytes(limit)));
    }
    page_.put("</table>");
  }

  static double mebibytes(Bytes bytes) { return static_cast<double>(bytes) / (1 << 20); }

  // Draws the legend. It explains the bands of a device from top to bottom.
  void legend() {
    page_.put("<p>Each device, from the top: ");
    page_.legend_entry("#4878a8", "a node (colours only tell neighbours apart; its name on hover)");
    page_.legend_entry("#7f93a8", "nodes too short to draw apart");
    page_.legend_entry("#f1f1f4", "idle");
    page_.legend_entry("#d98c3f", "a tensor on its way from the device");
    page_.legend_entry("#cfe0ee", "memory, with its peak");
    page_.legend_entry("#b03030", "memory limit");
    page_.put("</p>");
  }

  std::string timeline() {
    const double lane = kLane + kLinkLane + TimelinePage::kMemoryLane + TimelinePage::kGap,
                 height = static_cast<double>(simulation_.order.size()) * lane;
    page_.begin_timeline(height);
    for (std::size_t device = 0; device < simulation_.order.size(); ++device) {
      const double top = static_cast<double>(device) * lane;
      page_.lane(top, fmt::format("device {}", device));
      nodes(device, top);
      transfers(static_cast<DeviceIndex>(device), top + kLane);
      page_.memory(top + kLane + kLinkLane, simulation_.memory[device], simulation_.use[device].peak_bytes,
                   cost_.machine().device(static_cast<DeviceIndex>(device)).memory_limit);
    }
    return page_.end_timeline(height);
  }

  // Draws the nodes of a device. Wide ones have their names. Nodes without a visible gap between
  // them are joined to one band.
  void nodes(std::size_t device, double top) {
    constexpr std::array<const char*, 6> kColors = {"#4878a8", "#5f9e6e", "#b5651d",
                                                    "#8d6fb0", "#c0576a", "#5ba3a8"};
    for (const NodeIndex node : simulation_.order[device]) {
      const Nanoseconds begin = simulation_.start[node], end = simulation_.finish[node];
      if (page_.can_be_named(end - begin))
        page_.band(top, kLane, kColors[static_cast<std::size_t>(node) % kColors.size()], begin, end,
                   graph_.label(node));
      else
        page_.thin_band(top, kLane, "#7f93a8", begin, end);
    }
    page_.end_thin_bands();
  }

  void transfers(DeviceIndex device, double top) {
    for (const SimulatedTransfer& transfer : simulation_.transfers)
      if (transfer.from == device)
        page_.thin_band(top + 1, kLinkLane - 2, "#d98c3f", transfer.start, transfer.arrival);
    page_.end_thin_bands();
  }

  const CostModel& cost_;
  const TaskGraph& graph_;
  const Simulation& simulation_;
  TimelinePage page_;
};

}  // namespace

std::string report_html(const std::string& title, const ReportRows& rows, const CostModel& cost,
                        const Simulation& simulation) {
  return Page(cost, simulation).build(title, rows);
}

}  // namespace convoy::partition
