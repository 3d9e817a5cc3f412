// Compares the pipelines that are found for chains with the best of all divisions into stages.
// Tests the readers of PipeDream's and Piper's files.
#include "partition/pipeline/pipeline.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "partition/graph/pipedream.h"
#include "partition/graph/piper.h"
#include "partition/graph/task_graph_json.h"
#include "tests/partition/graphs.h"

namespace convoy::partition {
namespace {

TaskGraph random_chain(std::uint64_t seed, NodeIndex nodes) {
  Random random(seed);
  TaskGraphBuilder builder;
  for (NodeIndex node = 0; node < nodes; ++node) {
    TaskNode task;
    task.id = node, task.time = 1000 + random.below(100'000);
    task.output_bytes = random.below(200'000), task.resident_bytes = random.below(500'000);
    builder.add_node(task);
    if (node > 0) builder.add_edge(node - 1, node);
  }
  return builder.build();
}

// Returns the shortest period of a pipeline. Tries all divisions of the chain from node `first` on
// into stages, with any numbers of replicas. Earlier stages use `used` devices, and the longest of
// their periods is `so_far`.
Nanoseconds best_period(const CostModel& cost, NodeIndex first, DeviceIndex used, Nanoseconds so_far) {
  const TaskGraph& graph = cost.graph();
  if (first == graph.node_count()) return so_far;
  Nanoseconds best = std::numeric_limits<Nanoseconds>::max(), work = 0;
  Bytes weights = 0, outputs = 0;
  for (NodeIndex last = first; last < graph.node_count(); ++last) {
    work += graph.time(last), weights += graph.resident_bytes(last), outputs += graph.output_bytes(last);
    for (DeviceIndex replicas = 1; used + replicas <= cost.device_count(); ++replicas) {
      const Link& link = cost.machine().link(0, 1);
      const double moved = 2.0 * (replicas - 1) / replicas * static_cast<double>(weights);
      const auto exchange =
          replicas == 1 ? 0
                        : static_cast<Nanoseconds>(
                              (moved / link.bytes_per_ns + static_cast<double>(2 * link.latency)) / replicas);
      const Nanoseconds receive = first > 0 ? 2 * cost.transfer_time(graph.in_edges(first)[0]) : 0;
      const Bytes in_flight = (cost.device_count() - used + replicas - 1) / replicas;
      if (weights + outputs * in_flight > cost.machine().device(0).memory_limit) continue;
      const Nanoseconds period = std::max({so_far, work / replicas, exchange, receive});
      best = std::min(best, best_period(cost, last + 1, used + replicas, period));
    }
  }
  return best;
}

TEST(Pipeline, IsTheBestOfAllCuts) {
  int replicated = 0, staged = 0, nothing = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const TaskGraph graph = random_chain(seed, 2 + static_cast<NodeIndex>(seed % 5));
    const Bytes limit = seed % 3 == 0 ? 700'000 + static_cast<Bytes>(seed) * 20'000 : kUnlimited;
    const Machine machine = Machine::uniform(3, {1000, seed % 2 == 0 ? 10.0 : 2.0}, limit);
    const CostModel cost(graph, machine);
    const Nanoseconds best = best_period(cost, 0, 0, 0);
    const std::optional<Pipeline> pipeline = plan_pipeline(cost, true);
    ASSERT_EQ(pipeline.has_value(), best != std::numeric_limits<Nanoseconds>::max()) << "seed " << seed;
    if (!pipeline) {
      ++nothing;
      continue;
    }
    EXPECT_EQ(pipeline->period, best) << "seed " << seed;
    Nanoseconds work = 0;
    for (const PipelineStage& stage : pipeline->stages) {
      work += stage.work;
      replicated += stage.replicas > 1;
      EXPECT_LE(stage.bytes, limit);
    }
    staged += pipeline->stages.size() > 1;
    EXPECT_EQ(work, graph.total_time());
    EXPECT_EQ(pipeline->batch(5), pipeline->fill + 4 * pipeline->period);
  }
  EXPECT_GT(replicated, 5);
  EXPECT_GT(staged, 5);
  EXPECT_GT(nothing, 0);
}

TEST(Pipeline, RefusesWhatItDoesNotPlan) {
  const TaskGraph graph = random_chain(1, 4);
  Machine machine = Machine::uniform(2, {0, 1});
  machine.device(1).speed = 2;
  EXPECT_THROW(plan_pipeline(CostModel(graph, machine), true), std::runtime_error);
}

constexpr const char* kProfile =
    "node2 -- Conv2d(3, 64, kernel_size=(3, 3)) -- forward_compute_time=2.500, backward_compute_time=4.000, "
    "activation_size=100.000, parameter_size=7168.000\n"
    "node1 -- Input -- forward_compute_time=1.000, backward_compute_time=0.000, activation_size=[70.0; "
    "30.0], "
    "parameter_size=0.000\n\tnode1 -- node2\n";

TEST(PipeDream, ReadsProfiles) {
  const TaskGraph graph = parse_pipedream_profile(kProfile, "graph.txt");
  ASSERT_EQ(graph.node_count(), 2);
  EXPECT_EQ(graph.name(0), "Conv2d(3, 64, kernel_size=(3, 3))");
  EXPECT_EQ(graph.time(0), 6'500'000);
  EXPECT_EQ(graph.resident_bytes(0), 7168);
  EXPECT_EQ(graph.output_bytes(1), 100);
  EXPECT_EQ(graph.target(graph.out_begin(1)), 0);
  const auto error_of = [](const std::string& text) -> std::string {
    try {
      parse_pipedream_profile(text, "graph.txt");
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(error_of(std::string(kProfile) + "\tnode1 -- node7\n"),
            "graph.txt:4: no node has the name node7");
  EXPECT_EQ(error_of("a -- b -- forward_compute_time=x, backward_compute_time=0"),
            "graph.txt:1: forward_compute_time= is \"x\", expected a number from 0 to 9e12");
  EXPECT_EQ(error_of("a -- b -- forward_compute_time=1, backward_compute_time=0, forward_compute_time=2"),
            "graph.txt:1: forward_compute_time= is given twice");
  EXPECT_EQ(error_of("nonsense\n"),
            "graph.txt:1: expected NODE -- TEXT -- forward_compute_time=…, found \"nonsense\"");
}

std::string piper_input(const std::string& instead_of = "", const std::string& by = "") {
  std::string text = R"({"maxDevices": 3, "maxMemoryPerDevice": 1e6, "bandwidth": 1e9, "mbsInBatch": 8,
    "nodes": [{"id": 4, "name": "a", "TMPCs": {"1": [
      {"id": "vanilla", "timePerSample": 2e-6, "parameterSize": 10, "memoryUsageA": 30, "memoryUsageB": 20,
       "syncTimeFw": {}, "syncTimeBw": {"2": 0}},
      {"id": "activation recomp", "timePerSample": 3e-6, "parameterSize": 10, "memoryUsageA": 1, "memoryUsageB": 20,
       "syncTimeFw": {}, "syncTimeBw": {"2": 0}}]}},
     {"id": 2, "TMPCs": {"1": [
      {"id": "vanilla", "timePerSample": 4e-6, "parameterSize": 0, "memoryUsageA": 5, "memoryUsageB": 0,
       "syncTimeFw": {"4": 0}, "syncTimeBw": {}}]}}],
    "edges": [{"sourceId": 4, "destId": 2, "communicationCost": 100}]})";
  if (const std::size_t found = text.find(instead_of); !instead_of.empty())
    text.replace(found, instead_of.size(), by);
  return text;
}

TEST(Piper, ReadsInputs) {
  const TaskGraph graph = parse_piper_input(piper_input(), "p.json");
  ASSERT_EQ(graph.node_count(), 2);
  EXPECT_EQ(graph.name(0), "a");
  EXPECT_EQ(graph.time(0), 2000);
  EXPECT_EQ(graph.resident_bytes(0), 20);
  EXPECT_EQ(graph.parameter_bytes(0), 10);
  EXPECT_EQ(graph.output_bytes(0), 30);
  EXPECT_EQ(graph.bytes(0), 100);
  EXPECT_EQ(graph.device_count(), 3);
  EXPECT_EQ(graph.device_memory(), 1'000'000);
  EXPECT_EQ(graph.bytes_per_ns(), 1);
  EXPECT_EQ(graph.micro_batches(), 8);
  // Writing and reading the graph as our JSON must keep the bytes that replicas exchange.
  const TaskGraph again = parse_task_graph_json(task_graph_json(graph), "again.json");
  EXPECT_EQ(again.parameter_bytes(0), 10);
  EXPECT_EQ(again.parameter_bytes(1), 0);
  const auto error_of = [](const std::string& text) -> std::string {
    try {
      parse_piper_input(text, "p.json");
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(error_of("{"), "p.json: not JSON at byte 2");
  EXPECT_EQ(error_of(R"({"maxDevices": 3, "maxDevices": 4})"), "p.json: field \"maxDevices\" is given twice");
  EXPECT_EQ(error_of(piper_input("\"bandwidth\"", "\"maxDevices\"")),
            "p.json: field \"maxDevices\" is given twice");
  EXPECT_EQ(error_of("[]"), "p.json: expected an object of Piper's");
  EXPECT_EQ(error_of(R"({"maxDevices": 1e400})"), "p.json: maxDevices is too large");
  EXPECT_EQ(error_of(piper_input("2e-6", "-1")),
            "p.json: node 4: timePerSample is -1, expected 0 or more and below 104 days");
  EXPECT_EQ(error_of(piper_input("2e-6", "true")),
            "p.json: node 4: timePerSample is true, expected a number");
  EXPECT_EQ(error_of(piper_input("\"1\": [", "\"2\": [")),
            "p.json: node 4: TMPCs has no list \"1\", of ways to run it on one device");
  EXPECT_EQ(error_of(piper_input("\"maxDevices\": 3", "\"maxDevices\": 2.5")),
            "p.json: maxDevices is 2.5, expected a whole number");
  EXPECT_EQ(error_of(piper_input("\"bandwidth\": 1e9, ", "")), "p.json: bandwidth is missing");
  EXPECT_EQ(error_of(piper_input("\"sourceId\": 4", "\"sourceId\": 7")),
            "p.json: edge 7 -> 2: no node has the id 7");
}

// Replicas exchange only parameters, but all resident bytes count as memory.
TEST(Pipeline, ExchangesParametersAndHoldsAllResidentBytes) {
  TaskGraphBuilder builder;
  TaskNode node;
  node.time = 1'000'000, node.resident_bytes = 5000, node.parameter_bytes = 1000;
  builder.add_node(node);
  const TaskGraph graph = builder.build();
  const Machine machine = Machine::uniform(2, {0, 1});
  const std::optional<Pipeline> pipeline = plan_pipeline(CostModel(graph, machine), true);
  ASSERT_TRUE(pipeline);
  ASSERT_EQ(pipeline->stages[0].replicas, 2);
  // The two replicas exchange 1000 bytes, at 1 byte/ns, once for two micro-batches.
  EXPECT_EQ(pipeline->stages[0].exchange, 1000 / 2);
  EXPECT_EQ(pipeline->stages[0].bytes, 5000);
}

}  // namespace
}  // namespace convoy::partition
