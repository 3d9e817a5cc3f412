// The report page.
#include "partition/simulation/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace convoy::partition {
namespace {

constexpr double kWidth = 1400, kLane = 26, kLinkLane = 8, kMemoryLane = 44, kGap = 16, kLeft = 80;

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  return out;
}

class Page {
 public:
  Page(const CostModel& cost, const Simulation& simulation)
      : cost_(cost),
        graph_(cost.graph()),
        simulation_(simulation),
        scale_(kWidth / std::max(1.0, static_cast<double>(simulation.makespan))) {}

  std::string build(const std::string& title, const ReportRows& rows) {
    put("<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{0}</title><style>"
        "body{{font:14px "
        "system-ui,sans-serif;margin:24px;color:#222}}table{{border-collapse:collapse;margin-bottom:20px}}"
        "td,th{{padding:2px 14px 2px "
        "0;text-align:left}}td.n{{text-align:right;font-variant-numeric:tabular-nums}}"
        "svg text{{font:11px system-ui,sans-serif;fill:#444}}</style><h1>{0}</h1><table>",
        escaped(title));
    for (const auto& [name, value] : rows) put("<tr><th>{}<td class=\"n\">{}", escaped(name), escaped(value));
    put("</table>");
    device_table();
    legend();
    timeline();
    return fmt::to_string(out_);
  }

 private:
  template <typename... Values>
  void put(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Values>(values)...);
  }
  double x(Nanoseconds time) const { return kLeft + static_cast<double>(time) * scale_; }

  void device_table() {
    put("<table><tr><th>device<th>nodes<th>busy<th>exposed transfer<th>peak MiB<th>limit MiB");
    for (std::size_t device = 0; device < simulation_.use.size(); ++device) {
      const DeviceUse& use = simulation_.use[device];
      const Bytes limit = cost_.machine().device(static_cast<DeviceIndex>(device)).memory_limit;
      const double whole = std::max(1.0, static_cast<double>(simulation_.makespan)) / 100;
      put("<tr><td>{}<td class=\"n\">{}<td class=\"n\">{:.1f} %<td class=\"n\">{:.1f} %<td "
          "class=\"n\">{:.1f}<td class=\"n\">{}",
          device, use.nodes, static_cast<double>(use.busy) / whole,
          static_cast<double>(use.exposed_transfer) / whole, mebibytes(use.peak_bytes),
          limit == kUnlimited ? std::string("none") : fmt::format("{:.1f}", mebibytes(limit)));
    }
    put("</table>");
  }

  static double mebibytes(Bytes bytes) { return static_cast<double>(bytes) / (1 << 20); }

  // What each band of a device shows, from the top.
  void legend() {
    put("<p>Each device, from the top: ");
    const auto sample = [&](const char* color, const char* what) {
      put("<svg width=\"14\" height=\"12\"><rect width=\"14\" height=\"12\" fill=\"{}\"/></svg> {} &nbsp; ",
          color, what);
    };
    sample("#4878a8", "a node (colours only tell neighbours apart; its name on hover)");
    sample("#7f93a8", "nodes too short to draw apart");
    sample("#f1f1f4", "idle");
    sample("#d98c3f", "a tensor on its way from the device");
    sample("#cfe0ee", "memory, with its peak");
    sample("#b03030", "memory limit");
    put("</p>");
  }

  void timeline() {
    const double lane = kLane + kLinkLane + kMemoryLane + kGap,
                 devices = static_cast<double>(simulation_.order.size());
    put("<svg viewBox=\"0 0 {} {}\" width=\"100%\" role=\"img\" aria-label=\"timeline\">",
        kWidth + kLeft + 10, devices * lane + 24);
    for (std::size_t device = 0; device < simulation_.order.size(); ++device) {
      const double top = static_cast<double>(device) * lane;
      put("<text x=\"0\" y=\"{}\">device {}</text>", top + 17, device);
      put("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"#f1f1f4\"/>", kLeft, top, kWidth, kLane);
      nodes(device, top);
      transfers(static_cast<DeviceIndex>(device), top + kLane);
      memory(device, top + kLane + kLinkLane);
    }
    constexpr int kTicks = 10;
    for (int tick = 0; tick <= kTicks; ++tick)
      put("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"{}\">{:.4g} µs</text>", kLeft + kWidth * tick / kTicks,
          devices * lane + 14, tick == kTicks ? "end" : "middle",
          static_cast<double>(simulation_.makespan) / 1e3 * tick / kTicks);
    put("</svg></html>\n");
  }

  // Neighbours whose gap cannot be seen are one rectangle; wide nodes keep their own and their name.
  void nodes(std::size_t device, double top) {
    constexpr double kVisible = 0.7, kNamed = 4;
    constexpr std::array<const char*, 6> kColors = {"#4878a8", "#5f9e6e", "#b5651d",
                                                    "#8d6fb0", "#c0576a", "#5ba3a8"};
    double from = -1, until = -1;
    const auto flush = [&] {
      if (from >= 0)
        put("<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" fill=\"#7f93a8\"/>", from, top,
            std::max(0.3, until - from), kLane);
      from = -1;
    };
    for (const NodeIndex node : simulation_.order[device]) {
      const double begin = x(simulation_.start[node]), end = x(simulation_.finish[node]);
      if (end - begin >= kNamed) {
        flush();
        put("<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\"><title>{} {:.1f} µs at "
            "{:.1f} µs</title></rect>",
            begin, top, end - begin, kLane, kColors[static_cast<std::size_t>(node) % kColors.size()],
            escaped(graph_.label(node)),
            static_cast<double>(simulation_.finish[node] - simulation_.start[node]) / 1e3,
            static_cast<double>(simulation_.start[node]) / 1e3);
        continue;
      }
      if (from >= 0 && begin - until > kVisible) flush();
      if (from < 0) from = begin;
      until = end;
    }
    flush();
  }

  void transfers(DeviceIndex device, double top) {
    double from = -1, until = -1;
    const auto flush = [&] {
      if (from >= 0)
        put("<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" fill=\"#d98c3f\"/>", from, top + 1,
            std::max(0.3, until - from), kLinkLane - 2);
    };
    for (const Transfer& transfer : simulation_.transfers) {
      if (transfer.from != device) continue;
      if (from < 0 || x(transfer.start) - until > 0.7) {
        flush();
        from = x(transfer.start), until = x(transfer.arrival);
      }
      until = std::max(until, x(transfer.arrival));
    }
    flush();
  }

  void memory(std::size_t device, double top) {
    const std::vector<MemorySample>& curve = simulation_.memory[device];
    const Bytes limit = cost_.machine().device(static_cast<DeviceIndex>(device)).memory_limit;
    const Bytes peak = simulation_.use[device].peak_bytes;
    const double full =
        static_cast<double>(std::max<Bytes>(1, limit == kUnlimited ? peak : std::max(limit, peak)));
    const auto y = [&](Bytes bytes) { return top + kMemoryLane * (1 - static_cast<double>(bytes) / full); };
    put("<path fill=\"#cfe0ee\" stroke=\"none\" d=\"M{:.1f} {:.1f}", kLeft, top + kMemoryLane);
    // The highest sample of each column.
    for (std::size_t i = 0; i < curve.size();) {
      const double column = x(curve[i].time);
      Bytes highest = curve[i].bytes;
      std::size_t next = i + 1;
      while (next < curve.size() && x(curve[next].time) - column < 1)
        highest = std::max(highest, curve[next++].bytes);
      const double end = next < curve.size() ? x(curve[next].time) : kLeft + kWidth;
      put("L{:.1f} {:.1f}L{:.1f} {:.1f}", column, y(highest), end, y(highest));
      i = next;
    }
    put("L{:.1f} {:.1f}Z\"/>", kLeft + kWidth, top + kMemoryLane);
    if (limit != kUnlimited)
      put("<path stroke=\"#b03030\" d=\"M{} {:.1f}H{}\"/>", kLeft, y(limit), kLeft + kWidth);
    put("<text x=\"0\" y=\"{}\">{:.0f} MiB</text>", top + kMemoryLane - 2, mebibytes(peak));
  }

  const CostModel& cost_;
  const TaskGraph& graph_;
  const Simulation& simulation_;
  const double scale_;
  fmt::memory_buffer out_;
};

}  // namespace

std::string report_html(const std::string& title, const ReportRows& rows, const CostModel& cost,
                        const Simulation& simulation) {
  return Page(cost, simulation).build(title, rows);
}

}  // namespace convoy::partition
