// Tests the report page and the trace of clients (jobs) that share a device.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "partition/sharing/client_report.h"
#include "tests/partition/sharing/workloads.h"

namespace convoy::partition::sharing {
namespace {

// Returns clients (jobs) of which one is evicted while it is idle, because another needs its
// memory. So the schedule has every kind of work.
Workload swapping() {
  return testing::workload_of({{2, {4, 4}, {20}, 3, 8}, {1, {5}, {}, 0, 6}, {1, {2}, {}, 1}}, {2, 10});
}

TEST(SharingReport, TheTraceHasEveryEngineAndTheMemory) {
  const Workload workload = swapping();
  const ClientSchedule schedule =
      simulate(workload, std::vector<ClientIndex>{0, 1, 2}, Prefetch::kOn, Detail::kAll);
  const auto trace = nlohmann::json::parse(chrome_trace(workload, schedule));
  std::map<std::string, std::set<int>> threads;
  std::set<std::string> lanes;
  std::size_t intervals = 0, samples = 0;
  for (const auto& event : trace["traceEvents"]) {
    if (event["name"] == "thread_name") lanes.insert(event["args"]["name"]);
    if (event["ph"] == "C") {
      EXPECT_EQ(event["args"]["bytes"], schedule.memory[samples++].bytes);
    }
    if (event["ph"] != "X") continue;
    const EngineInterval& interval = schedule.intervals[intervals++];
    EXPECT_EQ(event["ts"], static_cast<double>(interval.start) / 1e3);
    EXPECT_EQ(event["dur"], static_cast<double>(interval.end - interval.start) / 1e3);
    threads[event["name"]].insert(event["tid"].get<int>());
  }
  EXPECT_EQ(intervals, schedule.intervals.size());
  EXPECT_EQ(samples, schedule.memory.size());
  EXPECT_EQ(lanes, (std::set<std::string>{"copy in", "compute 0", "compute 1", "copy back"}));
  const std::map<std::string, std::set<int>> expected = {
      {"a: copy in", {0}},  {"a: kernel 0", {1}},  {"a: eviction", {3}}, {"a: return", {0}},
      {"a: kernel 1", {1}}, {"a: copy back", {3}}, {"b: copy in", {0}},  {"b: kernel 0", {1}},
      {"c: copy in", {0}},  {"c: kernel 0", {2}},  {"c: copy back", {3}}};
  EXPECT_EQ(threads, expected);
}

TEST(SharingReport, ThePageIsSelfContained) {
  const Workload workload = swapping();
  const ClientSchedule schedule =
      simulate(workload, std::vector<ClientIndex>{0, 1, 2}, Prefetch::kOn, Detail::kAll);
  const std::string page = report_html("a <b>", {{"makespan", "1 µs"}}, workload, schedule);
  for (const char* part : {"<svg", "a &lt;b&gt;", ">copy in</text>", ">compute 0</text>", ">compute 1</text>",
                           ">copy back</text>", "<title>a: eviction 1.5 µs at 6.0 µs</title>",
                           "<title>b: kernel 0 5.0 µs at 8.5 µs</title>", "stroke=\"#b03030\""})
    EXPECT_NE(page.find(part), std::string::npos) << part;
  EXPECT_EQ(page.find("http"), std::string::npos);
  EXPECT_EQ(page.find("<script"), std::string::npos);
}

// The page of many clients must stay small: neighbouring bars that are too thin to see apart become
// one.
TEST(SharingReport, APageOfManyClientsIsSmall) {
  const Workload workload = testing::random_workload(1, {.clients = 10'000, .back = 50}, {.memory = 200'000});
  std::vector<ClientIndex> order(workload.count());
  for (ClientIndex client = 0; client < workload.count(); ++client) order[client] = client;
  const ClientSchedule schedule = simulate(workload, order, Prefetch::kOn, Detail::kAll);
  EXPECT_GT(schedule.intervals.size(), 25'000u);
  EXPECT_LT(report_html("many", {}, workload, schedule).size(), 400'000u);
}

}  // namespace
}  // namespace convoy::partition::sharing
