// Tests reading descriptions of machines (devices and links) from files.
#include "partition/simulation/topology.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "partition/graph/task_graph_json.h"

namespace convoy::partition {
namespace {

std::string error_of(const std::string& text, DeviceIndex devices = 0) {
  try {
    parse_topology(text, "t.json", devices);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(Topology, ReadsAMatrix) {
  const Machine machine = parse_topology(
      R"({"devices": [{"name": "fast", "count": 2, "memory_bytes": 1000}, {"speed": 0.5}],
          "latency_us": [[0, 1, 5], [2, 0, 5], [7, 7, 0]], "gbytes_per_second": 10})",
      "t.json", 3);
  ASSERT_EQ(machine.device_count(), 3);
  EXPECT_EQ(machine.device(1).memory_limit, 1000);
  EXPECT_EQ(machine.device(2).memory_limit, kUnlimited);
  EXPECT_EQ(machine.device(2).speed, 0.5);
  EXPECT_EQ(machine.link(1, 0).latency, 2000);
  EXPECT_EQ(machine.link(2, 1).latency, 7000);
  EXPECT_FALSE(machine.same_links());
}

TEST(Topology, ReadsACluster) {
  const char* cluster = R"({"devices_per_node": 2, "within_node": {"latency_us": 1, "gbytes_per_second": 300},
                            "between_nodes": {"latency_us": 6, "gbytes_per_second": 20}})";
  const Machine machine = parse_topology(cluster, "t.json", 4);
  EXPECT_EQ(machine.link(0, 1).latency, 1000);
  EXPECT_EQ(machine.link(1, 2).bytes_per_ns, 20);
  EXPECT_EQ(error_of(cluster, 3), "t.json: devices_per_node is 2, expected a divisor of the 3 devices");
}

// A node may have a single time, which holds for every kind of device, or a time for each kind. In
// both cases the time is divided by the device's speed.
TEST(Topology, KindsHaveTheirOwnTimes) {
  const TaskGraph graph = parse_task_graph_json(
      R"({"nodes": [{"id": 0, "time_us": {"fast": 10, "slow": 40}, "resident_bytes": 0, "output_bytes": 0},
                    {"id": 1, "time_us": 7, "resident_bytes": 0, "output_bytes": 0}], "edges": []})",
      "g.json");
  const char* text = R"({"devices": [{"name": "fast"}, {"name": "slow"}, {"name": "slow", "speed": 2}],
                         "latency_us": 1, "gbytes_per_second": 1})";
  const Machine machine = parse_topology(text, "t.json", 0);
  const CostModel cost(graph, machine);
  EXPECT_FALSE(cost.same_speeds());
  const std::vector<Nanoseconds> first = {10'000, 40'000, 20'000}, second = {7000, 7000, 3500};
  for (DeviceIndex device = 0; device < 3; ++device) {
    EXPECT_EQ(cost.run_time(0, device), first[device]);
    EXPECT_EQ(cost.run_time(1, device), second[device]);
  }
  EXPECT_EQ(cost.average_time(0), 70'000 / 3);
  const TaskGraph again = parse_task_graph_json(task_graph_json(graph), "again.json");
  EXPECT_EQ(again.kinds(), graph.kinds());
  EXPECT_EQ(again.time(0, 1), 40'000);
  Machine other = machine;
  other.device(1).kind = "medium";
  try {
    CostModel(graph, other);
    ADD_FAILURE() << "takes a kind without a time";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(
        error.what(),
        "node 0: no time for device 1, which is of kind \"medium\"; the graph has times for fast, slow");
  }
}

TEST(Topology, ErrorsNameFileAndField) {
  EXPECT_EQ(error_of(R"({"devices": [{"name": 1}], "latency_us": 1, "gbytes_per_second": 1})"),
            "t.json: name is 1, expected text");
  EXPECT_EQ(error_of("{"), "t.json: not JSON at byte 2");
  EXPECT_EQ(error_of(R"({"devices": [{}], "latency_us": 1e400, "gbytes_per_second": 1})"),
            "t.json: latency_us is too large");
  EXPECT_EQ(error_of(R"({"devices": [{}], "latency_us": 1, "gbytes_per_second": 1, "x": 1})"),
            "t.json: unknown field x");
  EXPECT_EQ(error_of(R"({"devices": [{"count": 2}], "latency_us": -1, "gbytes_per_second": 1})"),
            "t.json: latency_us is -1, expected a number from 0");
  EXPECT_EQ(
      error_of(R"({"devices": [{"count": 2}], "latency_us": 1, "gbytes_per_second": [[1, 0], [1, 1]]})"),
      "t.json: gbytes_per_second[0][1] is 0, expected a number above 0");
  EXPECT_EQ(error_of(R"({"devices": [{"count": 2}], "latency_us": [[1]], "gbytes_per_second": 1})"),
            "t.json: latency_us is no matrix of 2 rows and columns");
  EXPECT_EQ(error_of(R"({"devices": [{"count": 2}], "latency_us": 1, "gbytes_per_second": 1})", 3),
            "t.json: has 2 devices, expected 3");
  EXPECT_EQ(
      error_of(R"({"devices": [{"count": 2}], "latency_us": 1, "latency_us": 9, "gbytes_per_second": 1})"),
      "t.json: field \"latency_us\" is given twice");
  EXPECT_EQ(error_of(R"({"devices": [{"name": "a"}, {"count": 2, "count": 1}], "latency_us": 1})"),
            "t.json: devices: \"count\" is given twice");
}

}  // namespace
}  // namespace convoy::partition
