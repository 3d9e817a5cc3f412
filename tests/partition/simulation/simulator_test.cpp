// Compares the simulator with schedules worked out by hand. Also computes times and memory from the
// simulated order in another way, and compares them with the simulator's.
#include "partition/simulation/simulator.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "partition/placement/baselines.h"
#include "partition/simulation/chrome_trace.h"
#include "partition/simulation/placement_report.h"
#include "tests/partition/graphs.h"

namespace convoy::partition {
namespace {

using testing::graph_of;

TEST(Simulator, SendsOnceAndOverlaps) {
  // Node 0 on device 0 feeds nodes 1 and 2 on device 1 and node 3 on device 0. A transfer takes 6
  // µs: 5 µs of latency and 1000 bytes at 1 byte/ns.
  const TaskGraph graph = graph_of({10, 4, 4, 20}, {{0, 1}, {0, 2}, {0, 3}});
  const Machine machine = Machine::uniform(2, {5000, 1});
  const CostModel cost(graph, machine);
  const Simulation result = simulate(cost, {2, {0, 1, 1, 0}, {}});
  EXPECT_EQ(result.transfers.size(), 1u);
  EXPECT_EQ(result.cut_bytes, 1000);
  EXPECT_EQ(result.start[3], 10'000) << "the transfer must not hold up its sender";
  EXPECT_EQ(result.start[1], 16'000);
  EXPECT_EQ(result.start[2], 20'000);
  EXPECT_EQ(result.makespan, 30'000);
  EXPECT_EQ(result.use[1].busy, 8'000);
  EXPECT_EQ(result.use[1].idle, 22'000);
  EXPECT_EQ(result.use[1].exposed_transfer, 6'000);
}

TEST(Simulator, ListsByBottomLevel) {
  // Nodes 0 and 1 are ready at time 0 on one device. Node 1 must run first, because its path to the
  // end is longer.
  const TaskGraph graph = graph_of({5, 3, 10}, {{1, 2}});
  const Machine machine = Machine::uniform(2, {0, 1});
  const CostModel cost(graph, machine);
  EXPECT_EQ(simulate(cost, {2, {0, 0, 0}, {}}).order[0], (std::vector<NodeIndex>{1, 2, 0}));
}

TEST(Simulator, ContentionSerialisesTransfers) {
  // Device 0 sends two tensors at the same moment, to devices 1 and 2. Each takes 1000 ns. With
  // contention, the second must wait for the first.
  const TaskGraph graph = graph_of({1, 1, 1}, {{0, 1}, {0, 2}});
  Machine machine = Machine::uniform(3, {0, 1});
  {
    const CostModel cost(graph, machine);
    EXPECT_EQ(simulate(cost, {3, {0, 1, 2}, {}}).makespan, 3000);
  }
  machine.set_contention(true);
  const CostModel cost(graph, machine);
  EXPECT_EQ(simulate(cost, {3, {0, 1, 2}, {}}).makespan, 4000);
}

// Node 0 on device 0 and node 1 on device 1 end at the same moment, and both send to device 2. Each
// transfer takes 3000 ns and the latency. With contention, one must wait for the other.
TEST(Simulator, ContentionMakesSendersToOneDeviceTakeTurns) {
  const TaskGraph graph = graph_of({1, 1, 1, 1}, {{0, 2}, {1, 3}}, 3000);
  Machine machine = Machine::uniform(3, {500, 1});
  const Placement placement{3, {0, 1, 2, 2}, {}};
  {
    const CostModel cost(graph, machine);
    EXPECT_EQ(simulate(cost, placement).makespan, 1000 + 3500 + 2000);
  }
  machine.set_contention(true);
  const CostModel cost(graph, machine);
  const Simulation result = simulate(cost, placement);
  ASSERT_EQ(result.transfers.size(), 2u);
  EXPECT_EQ(result.transfers[0].start, 1000);
  EXPECT_EQ(result.transfers[1].start, 4000) << "the receiver's link is taken, the latency does not hold it";
  EXPECT_EQ(result.start[3], 7500);
  EXPECT_EQ(result.makespan, 8500);
}

// Three edges of node 0 go to device 1. The largest is neither first nor last, and only it is sent.
// A small edge goes to device 2.
TEST(Simulator, SendsTheLargestEdgeOfEachDevice) {
  TaskGraphBuilder builder;
  for (int node = 0; node < 5; ++node) {
    TaskNode task;
    task.id = node, task.time = 1000, task.output_bytes = node == 0 ? 3000 : 0;
    builder.add_node(task);
  }
  builder.add_edge(0, 1, 1000), builder.add_edge(0, 2, 3000), builder.add_edge(0, 3, 2000);
  builder.add_edge(0, 4, 500);
  const TaskGraph graph = builder.build();
  const Machine machine = Machine::uniform(3, {100, 1});
  const CostModel cost(graph, machine);
  const Simulation result = simulate(cost, {3, {0, 1, 1, 1, 2}, {}});
  ASSERT_EQ(result.transfers.size(), 2u) << "once per device";
  EXPECT_EQ(result.transfers[0].bytes, 3000);
  EXPECT_EQ(result.transfers[1].bytes, 500);
  EXPECT_EQ(result.cut_bytes, 3500);
  EXPECT_EQ(result.start[1], 1000 + 3100) << "even the smallest edge waits for the one transfer";
  EXPECT_EQ(result.start[4], 1000 + 600);
  EXPECT_EQ(result.use[1].peak_bytes, 3000);
}

// Two edges of node 0 go to one device, and their transfers take the same time after rounding. The
// copy on that device must have the bytes of the larger edge.
TEST(Simulator, ACopyHasTheMostBytesOfItsEdges) {
  TaskGraphBuilder builder;
  for (int node = 0; node < 3; ++node) {
    TaskNode task;
    task.id = node, task.time = 1000, task.output_bytes = node == 0 ? 1100 : 0;
    builder.add_node(task);
  }
  builder.add_edge(0, 1, 1041), builder.add_edge(0, 2, 1100);
  const TaskGraph graph = builder.build();
  const Machine machine = Machine::uniform(2, {0, 130});
  const Simulation result = simulate(CostModel(graph, machine), {2, {0, 1, 1}, {}});
  EXPECT_EQ(result.cut_bytes, 1100);
  EXPECT_EQ(result.use[1].peak_bytes, 1100);
}

TEST(Simulator, SpeedsAndTopology) {
  const TaskGraph graph = graph_of({10, 10}, {{0, 1}});
  Machine machine = Machine::cluster(2, 2, {1000, 1}, {50'000, 0.1});
  machine.device(3).speed = 2;
  const CostModel cost(graph, machine);
  EXPECT_EQ(simulate(cost, {4, {0, 1}, {}}).makespan, 10'000 + 2000 + 10'000);
  EXPECT_EQ(simulate(cost, {4, {0, 3}, {}}).makespan, 10'000 + 60'000 + 5'000);
}

TEST(Simulator, MemoryFollowsLifetimes) {
  // In a chain on one device, the outputs of two neighbours are live together, never three.
  const TaskGraph chain = graph_of({1, 1, 1, 1}, {{0, 1}, {1, 2}, {2, 3}}, 100);
  const Machine machine = Machine::uniform(2, {0, 1});
  const CostModel cost(chain, machine);
  EXPECT_EQ(simulate(cost, {2, {0, 0, 0, 0}, {}}).use[0].peak_bytes, 200);
  const Simulation cut = simulate(cost, {2, {0, 0, 1, 1}, {}});
  EXPECT_EQ(cut.use[0].peak_bytes, 200) << "the sent output of 1 stays until it has arrived";
  EXPECT_EQ(cut.use[1].peak_bytes, 200) << "its copy and the output of 2";
  EXPECT_EQ(cut.memory[1].back().bytes, 0);
}

TEST(Simulator, NamesADeadlock) {
  const TaskGraph graph = graph_of({1, 1, 1, 1}, {{0, 1}, {2, 3}});
  const Machine machine = Machine::uniform(2, {0, 1});
  const CostModel cost(graph, machine);
  try {
    simulate(cost, {2, {0, 1, 1, 0}, {{3, 0}, {1, 2}}});
    FAIL() << "each device waits for the other";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("deadlocks"), std::string::npos) << error.what();
  }
}

// Computes the times and memory of a schedule a second time, from its order alone and without
// events, to check the simulator.
struct Oracle {
  std::vector<Nanoseconds> start, finish;
  std::vector<Bytes> peak;

  Oracle(const CostModel& cost, const Placement& placement, const std::vector<std::vector<NodeIndex>>& order)
      : start(cost.graph().node_count(), 0), finish(start), peak(cost.device_count(), 0) {
    const TaskGraph& graph = cost.graph();
    for (bool changed = true; changed;) {
      changed = false;
      for (const auto& list : order) {
        Nanoseconds free = 0;
        for (const NodeIndex node : list) {
          Nanoseconds at = free;
          for (const EdgeIndex edge : graph.in_edges(node))
            at = std::max(at, arrival(cost, placement, graph.source(edge), node));
          free = at + cost.run_time(node, placement.device_of[node]);
          changed |= at != start[node] || free != finish[node];
          start[node] = at, finish[node] = free;
        }
      }
    }
    for (DeviceIndex device = 0; device < cost.device_count(); ++device) find_peak(cost, placement, device);
  }
  Nanoseconds arrival(const CostModel& cost, const Placement& placement, NodeIndex producer,
                      NodeIndex consumer) const {
    Nanoseconds longest = 0;
    const TaskGraph& graph = cost.graph();
    for (EdgeIndex edge = graph.out_begin(producer); edge < graph.out_end(producer); ++edge)
      if (placement.device_of[graph.target(edge)] == placement.device_of[consumer])
        longest = std::max(
            longest, cost.transfer_time(edge, placement.device_of[producer], placement.device_of[consumer]));
    return finish[producer] + longest;
  }
  // Finds the peak of the device's memory. Adds up all live bytes whenever something starts.
  void find_peak(const CostModel& cost, const Placement& placement, DeviceIndex device) {
    const TaskGraph& graph = cost.graph();
    struct Span {
      Nanoseconds from, until;
      Bytes bytes;
    };
    std::vector<Span> spans;
    Bytes resident = 0;
    for (NodeIndex node = 0; node < graph.node_count(); ++node) {
      std::map<DeviceIndex, Bytes> sent;
      std::map<DeviceIndex, Nanoseconds> until;
      const DeviceIndex home = placement.device_of[node];
      until[home] = finish[node];
      for (EdgeIndex edge = graph.out_begin(node); edge < graph.out_end(node); ++edge) {
        const NodeIndex next = graph.target(edge);
        const DeviceIndex to = placement.device_of[next];
        until[to] = std::max(until[to], finish[next]);
        if (to == home) continue;
        sent[to] = std::max(sent[to], graph.bytes(edge));
        until[home] = std::max(until[home], arrival(cost, placement, node, next));
      }
      if (home == device) {
        resident += graph.resident_bytes(node);
        spans.push_back({start[node], until[home], graph.output_bytes(node)});
      } else if (sent.contains(device)) {
        spans.push_back({finish[node], until[device], sent[device]});
      }
    }
    peak[device] = resident;
    for (const Span& at : spans) {
      Bytes live = resident;
      for (const Span& other : spans)
        if (other.from <= at.from &&
            (at.from < other.until || (other.from == at.from && other.until == at.from)))
          live += other.bytes;
      peak[device] = std::max(peak[device], live);
    }
  }
};

TEST(Simulator, AgreesWithAnOracleOnRandomGraphs) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    testing::Shape shape;
    shape.nodes = 5 + static_cast<NodeIndex>(seed % 40);
    const TaskGraph graph = testing::random_graph(seed, shape);
    const DeviceIndex devices = 1 + static_cast<DeviceIndex>(seed % 4);
    const Machine machine = Machine::uniform(devices, {5000, 10});
    const CostModel cost(graph, machine);
    Placement placement{devices, {}, {}};
    Random random(seed);
    for (NodeIndex node = 0; node < graph.node_count(); ++node)
      placement.device_of.push_back(static_cast<DeviceIndex>(random.below(devices)));
    const Simulation result = simulate(cost, placement);
    const Oracle oracle(cost, placement, result.order);
    ASSERT_EQ(result.start, oracle.start) << "seed " << seed;
    ASSERT_EQ(result.finish, oracle.finish) << "seed " << seed;
    ASSERT_EQ(result.makespan, *std::max_element(oracle.finish.begin(), oracle.finish.end()));
    for (DeviceIndex device = 0; device < devices; ++device)
      EXPECT_EQ(result.use[device].peak_bytes, oracle.peak[device])
          << "seed " << seed << " device " << device;
    // Simulating the order that resulted must give the same schedule again.
    placement.order = result.order;
    EXPECT_EQ(simulate(cost, placement).start, result.start);
  }
}

TEST(Simulator, TraceIsJsonAndReportIsSelfContained) {
  const TaskGraph graph = testing::random_graph(1, {.nodes = 30, .edge_share = 0.2});
  const Machine machine = Machine::uniform(3, {5000, 10}, 1 << 26);
  const CostModel cost(graph, machine);
  const Simulation result = simulate(cost, place_by_heft(cost, Units(graph, 3)));
  const auto trace = nlohmann::json::parse(chrome_trace(graph, result));
  int nodes = 0;
  for (const auto& event : trace["traceEvents"]) nodes += event["ph"] == "X" && event["args"].contains("id");
  EXPECT_EQ(nodes, 30);
  // Collect the slices of each track of the trace; they must not overlap.
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> tracks;
  for (const auto& event : trace["traceEvents"])
    if (event["ph"] == "X")
      tracks[{event["pid"], event["tid"]}].emplace_back(
          event["ts"], event["ts"].get<double>() + event["dur"].get<double>());
  EXPECT_GT(tracks.size(), 6u) << "all sends have one track";
  for (auto& [track, slices] : tracks) {
    std::sort(slices.begin(), slices.end());
    for (std::size_t i = 1; i < slices.size(); ++i) EXPECT_LE(slices[i - 1].second, slices[i].first + 1e-6);
  }
  const std::string page = report_html("a <b>", {{"makespan", "1 µs"}}, cost, result);
  EXPECT_NE(page.find("<svg"), std::string::npos);
  EXPECT_NE(page.find("a &lt;b&gt;"), std::string::npos);
  EXPECT_EQ(page.find("http"), std::string::npos);
  EXPECT_EQ(page.find("<script"), std::string::npos);
}

TEST(Machine, ManyDevicesInNodesTakeNoLongerThanTheirLinks) {
  const Machine machine = Machine::cluster(512, 8, {1000, 1}, {50'000, 0.1});
  EXPECT_FALSE(machine.same_links());
  EXPECT_EQ(machine.link(4095, 4088).latency, 1000);
  EXPECT_EQ(machine.link(4095, 4087).latency, 50'000);
  EXPECT_TRUE(Machine::cluster(1, 8, {1000, 1}, {50'000, 0.1}).same_links());
}

// Times must be refused if their sum overflows: the slowest link would then look like the best.
TEST(CostModel, RefusesTimesBeyondWhatAnIntegerHolds) {
  const TaskGraph graph = graph_of({1000, 1000}, {{0, 1}}, 1000);
  const auto fits = [&](const Machine& machine) {
    try {
      CostModel{graph, machine};
    } catch (const std::runtime_error&) {
      return false;
    }
    return true;
  };
  EXPECT_TRUE(fits(Machine::uniform(2, {0, 1e-12})));
  EXPECT_FALSE(fits(Machine::uniform(2, {0, 1e-300})));
  EXPECT_TRUE(fits(Machine::uniform(1, {0, 1e-300})));
  Machine slow = Machine::uniform(2, {0, 1});
  slow.device(1).speed = 1e-11;
  EXPECT_TRUE(fits(slow));
  slow.device(1).speed = 1e-300;
  EXPECT_FALSE(fits(slow));
}

TEST(Placement, ReadsWhatItWritesAndNamesDefects) {
  const TaskGraph graph = graph_of({1, 1, 1}, {{0, 1}});
  const Placement placement{2, {0, 1, 0}, {{0, 2}, {1}}};
  const std::string text = placement_json(graph, placement);
  const Placement again = parse_placement_json(text, graph, "p.json");
  EXPECT_EQ(again.device_of, placement.device_of);
  EXPECT_EQ(again.order, placement.order);
  const auto error = [&](const std::string& bad) -> std::string {
    try {
      parse_placement_json(bad, graph, "p.json");
    } catch (const std::runtime_error& caught) {
      return caught.what();
    }
    return "no error";
  };
  EXPECT_EQ(error("{"), "p.json: not JSON at byte 2");
  EXPECT_EQ(error(R"({"devices": 1e400})"), "p.json: devices is too large");
  EXPECT_EQ(error(R"({"devices": )" + std::string(3000, '9') + "}"), "p.json: devices is too large");
  EXPECT_EQ(error(R"({"devices": 2, "device_of": {"0": 0, "1": 1}})"), "p.json: node 2 is not placed");
  EXPECT_EQ(error(R"({"devices": 5000, "device_of": {"0": 0, "1": 1, "2": 1}})"),
            "p.json: devices is 5000, expected 1 to 4096");
  EXPECT_EQ(error(R"({"devices": 2, "device_of": {"0": 0, "1": 2, "2": 0}})"),
            "p.json: device_of: node 1 is on 2, expected 0 to 1");
  EXPECT_EQ(error(R"({"devices": 2, "device_of": {"9": 0}})"), "p.json: device_of: the graph has no node 9");
  EXPECT_EQ(error(R"({"devices": 2, "device_of": {"0": 0, "1": 1, "2": 0}, "order": [[0], [1]]})"),
            "p.json: node 2 is missing from the order");
  EXPECT_EQ(error(R"({"devices": 2, "device_of": {"0": 0, "1": 1, "2": 0}, "order": [[0, 1], [2]]})"),
            "p.json: node 1 is on device 1 but in the order of device 0");
  EXPECT_EQ(error(R"({"devices": 2, "device_of": {"0": 0, "1": 1, "2": 0, "1": 0}})"),
            "p.json: device_of: \"1\" is given twice");
  EXPECT_EQ(error(R"({"devices": 2, "device_of": {"0": 0, "1": 1, "2": 0, "01": 0}})"),
            "p.json: device_of: node 1 is given twice");
  EXPECT_EQ(error(R"({"devices": 2, "devices": 3, "device_of": {"0": 0, "1": 1, "2": 0}})"),
            "p.json: field \"devices\" is given twice");
  EXPECT_EQ(error(R"({"devices": 2, "device_of": {"0": 0, "1": 1, " 2": 0}})"),
            "p.json: device_of: key \" 2\" is not an id");
}

}  // namespace
}  // namespace convoy::partition
