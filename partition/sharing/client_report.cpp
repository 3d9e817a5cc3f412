#include "partition/sharing/client_report.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

namespace convoy::partition::sharing {
namespace {

constexpr std::array<std::string_view, 8> kColors = {"#4878a8", "#5f9e6e", "#b5651d", "#8d6fb0",
                                                     "#c0576a", "#5ba3a8", "#8a8a3a", "#3f5f8f"};

// Returns the row of an interval in the timeline. From the top, the rows are: copies in, each
// compute engine, copies back.
std::size_t lane_of(const EngineInterval& interval, const Workload& workload) {
  switch (interval.task) {
    case EngineTask::kCopyIn:
    case EngineTask::kReturn:
      return 0;
    case EngineTask::kKernel:
      return 1 + interval.engine;
    case EngineTask::kCopyBack:
    case EngineTask::kEvict:
      break;
  }
  return 1 + workload.device().compute_engines;
}

std::string lane_name(std::size_t lane, const Workload& workload) {
  const std::size_t engines = workload.device().compute_engines;
  if (lane == 0) return "copy in";
  if (lane == 1 + engines) return "copy back";
  return engines == 1 ? "compute" : fmt::format("compute {}", lane - 1);
}

std::string label_of(const EngineInterval& interval, const Workload& workload) {
  const Client& client = workload.client(interval.client);
  switch (interval.task) {
    case EngineTask::kCopyIn:
      return client.name + ": copy in";
    case EngineTask::kReturn:
      return client.name + ": return";
    case EngineTask::kKernel:
      return fmt::format("{}: kernel {}", client.name, interval.kernel);
    case EngineTask::kCopyBack:
      return client.name + ": copy back";
    case EngineTask::kEvict:
      break;
  }
  return client.name + ": eviction";
}

}  // namespace

std::string report_html(const std::string& title, const ReportRows& rows, const Workload& workload,
                        const ClientSchedule& schedule) {
  constexpr double kLane = TimelinePage::kLane + TimelinePage::kGap / 2;
  const std::size_t lanes = 2 + workload.device().compute_engines;
  const double height = static_cast<double>(lanes) * kLane + TimelinePage::kMemoryLane;
  TimelinePage page(schedule.makespan);
  page.begin(title, rows);
  page.put("<p>");
  page.legend_entry(kColors[0].data(),
                    "a client has one colour on all engines; its name and its work on hover");
  page.legend_entry("#222222", "evictions and returns");
  page.legend_entry("#7f93a8", "work too short to draw apart");
  page.legend_entry("#cfe0ee", "memory, with its peak");
  page.legend_entry("#b03030", "memory limit");
  page.put("</p>");
  page.begin_timeline(height);
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    const double top = static_cast<double>(lane) * kLane;
    page.lane(top, lane_name(lane, workload));
    for (const EngineInterval& interval : schedule.intervals) {
      if (lane_of(interval, workload) != lane) continue;
      const bool swap = interval.task == EngineTask::kEvict || interval.task == EngineTask::kReturn;
      if (page.can_be_named(interval.end - interval.start))
        page.band(top, TimelinePage::kLane, swap ? "#222222" : kColors[interval.client % kColors.size()],
                  interval.start, interval.end, label_of(interval, workload));
      else
        page.thin_band(top, TimelinePage::kLane, "#7f93a8", interval.start, interval.end);
    }
    page.end_thin_bands();
  }
  page.memory(static_cast<double>(lanes) * kLane, schedule.memory, schedule.peak_bytes,
              workload.device().memory);
  return page.end_timeline(height);
}

std::string chrome_trace(const Workload& workload, const ClientSchedule& schedule) {
  using Json = nlohmann::ordered_json;
  const auto micros = [](Nanoseconds time) { return static_cast<double>(time) / 1e3; };
  Json events = Json::array();
  events.push_back(
      {{"ph", "M"}, {"pid", 0}, {"name", "process_name"}, {"args", {{"name", "simulated device"}}}});
  for (std::size_t lane = 0; lane < 2 + static_cast<std::size_t>(workload.device().compute_engines); ++lane)
    events.push_back({{"ph", "M"},
                      {"pid", 0},
                      {"tid", lane},
                      {"name", "thread_name"},
                      {"args", {{"name", lane_name(lane, workload)}}}});
  for (const EngineInterval& interval : schedule.intervals)
    events.push_back({{"ph", "X"},
                      {"pid", 0},
                      {"tid", lane_of(interval, workload)},
                      {"name", label_of(interval, workload)},
                      {"ts", micros(interval.start)},
                      {"dur", micros(interval.end - interval.start)},
                      {"args", {{"bytes", interval.bytes}}}});
  for (const MemorySample& sample : schedule.memory)
    events.push_back({{"ph", "C"},
                      {"pid", 0},
                      {"name", "memory"},
                      {"ts", micros(sample.time)},
                      {"args", {{"bytes", sample.bytes}}}});
  return Json{{"displayTimeUnit", "ns"}, {"traceEvents", std::move(events)}}.dump(
             -1, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

}  // namespace convoy::partition::sharing
