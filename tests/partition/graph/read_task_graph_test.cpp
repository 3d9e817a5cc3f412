// Tests the readers of task graphs. The graph must hold the contents of the file. A defect must
// give an error of one line that names its place.
#include "partition/graph/read_task_graph.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "partition/graph/generators.h"
#include "partition/graph/pardnn_folder.h"
#include "tests/partition/graphs.h"

namespace convoy::partition {
namespace {

constexpr const char* kValid = R"({"nodes": [
{"id": 5, "name": "a", "time_us": 1.5, "resident_bytes": 10, "output_bytes": 100, "pin": 1},
{"id": 7, "time_us": 2, "resident_bytes": 0, "output_bytes": 50, "colocate": 3},
{"id": 9, "time_us": 0, "resident_bytes": 0, "output_bytes": 0, "colocate": 3}],
"edges": [{"from": 5, "to": 7},
{"from": 5, "to": 9, "bytes": 40}]})";

std::string error_of(const std::string& text) {
  try {
    parse_task_graph_json(text, "g.json");
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "no error";
}

std::string with(std::string text, const std::string& old, const std::string& fresh) {
  return text.replace(text.find(old), old.size(), fresh);
}

TEST(ReadTaskGraph, OurJson) {
  const TaskGraph graph = parse_task_graph_json(kValid, "g.json");
  ASSERT_EQ(graph.node_count(), 3);
  ASSERT_EQ(graph.edge_count(), 2);
  EXPECT_EQ(graph.id(0), 5);
  EXPECT_EQ(graph.name(0), "a");
  EXPECT_EQ(graph.name(1), "");
  EXPECT_EQ(graph.time(0), 1500);
  EXPECT_EQ(graph.resident_bytes(0), 10);
  EXPECT_EQ(graph.pin(0), 1);
  EXPECT_EQ(graph.pin(1), kNone);
  EXPECT_EQ(graph.group(0), kNone);
  EXPECT_EQ(graph.group(1), graph.group(2));
  EXPECT_EQ(graph.bytes(0), 100) << "an edge without bytes carries its producer's output";
  EXPECT_EQ(graph.bytes(1), 40);
  EXPECT_EQ(graph.critical_path(), 3500);
}

TEST(ReadTaskGraph, ErrorsNameLineNodeAndField) {
  const auto expect = [](const std::string& text, const std::string& place, const std::string& what) {
    const std::string error = error_of(text);
    EXPECT_TRUE(error.starts_with(place)) << error;
    EXPECT_NE(error.find(what), std::string::npos) << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  };
  expect(with(kValid, "\"time_us\": 2,", ""), "g.json:3: node 7", "time_us is missing");
  expect(with(kValid, "\"time_us\": 2", "\"time_us\": -2"), "g.json:3: node 7", "time_us is -2");
  expect(with(kValid, "\"time_us\": 2", "\"time_us\": \"x\""), "g.json:3: node 7", "time_us is text");
  expect(with(kValid, "\"time_us\": 2", "\"time_us\": 1e300"), "g.json:3: node 7", "time_us");
  expect(with(kValid, "\"resident_bytes\": 10", "\"resident_bytes\": -1"), "g.json:2: node 5",
         "resident_bytes is -1");
  expect(with(kValid, "\"output_bytes\": 50", "\"output_bytes\": 0.5"), "g.json:3: node 7",
         "output_bytes is 0.5");
  expect(with(kValid, "\"id\": 7", "\"id\": 5"), "g.json:3: node 5", "id used twice");
  expect(with(kValid, "\"to\": 9", "\"to\": 8"), "g.json:6: edge 5 -> 8", "no node has the id 8");
  expect(with(kValid, "\"to\": 9", "\"to\": 7"), "g.json:6: edge 5 \"a\" -> 7", "given twice");
  expect(with(kValid, "\"bytes\": 40", "\"bytes\": -4"), "g.json:6: edge 5 -> 9", "bytes is -4");
  expect(with(kValid, "\"bytes\": 40", "\"weight\": 4"), "g.json:6: edge 5 -> 9", "unknown field weight");
  expect(with(kValid, "\"from\": 5, \"to\": 7", "\"from\": 7, \"to\": 7"), "g.json:5: edge 7 -> 7", "itself");
  expect(with(kValid, "\"pin\": 1", "\"pin\": -1"), "g.json:2: node 5", "pin is -1");
  expect(with(kValid, "\"edges\"", "\"arcs\""), "g.json:", "edges is missing");
  expect(with(kValid, "\"edges\"", "\"extra\": [{}], \"edges\""), "g.json:", "unknown field extra");
  expect(R"({"maxFPGAs": 2, "maxFPGAs": 3, "nodes": [], "edges": []})",
         "g.json:1:", "maxFPGAs is given twice");
  expect(R"({"maxFPGAs": 2, "nodes": [], "edges": []})", "g.json:1:", "unknown field maxFPGAs");
  expect("[1, 2]", "g.json:1:", "expected an object");
  expect("{\"nodes\": [", "g.json:1:", "not JSON");
  expect("", "g.json:1:", "not JSON");
}

TEST(ReadTaskGraph, PrintsOneCycle) {
  const std::string error = error_of(R"({"nodes": [
    {"id": 1, "name": "a", "time_us": 1, "resident_bytes": 0, "output_bytes": 0},
    {"id": 2, "name": "b", "time_us": 1, "resident_bytes": 0, "output_bytes": 0},
    {"id": 3, "name": "c", "time_us": 1, "resident_bytes": 0, "output_bytes": 0},
    {"id": 4, "name": "d", "time_us": 1, "resident_bytes": 0, "output_bytes": 0}],
    "edges": [{"from": 1, "to": 2}, {"from": 2, "to": 3}, {"from": 3, "to": 2}, {"from": 3, "to": 4}]})");
  EXPECT_TRUE(error.find(R"(cycle: 2 "b" -> 3 "c" -> 2 "b")") != std::string::npos ||
              error.find(R"(cycle: 3 "c" -> 2 "b" -> 3 "c")") != std::string::npos)
      << error;
}

TEST(ReadTaskGraph, PinsOfAGroupMustAgree) {
  const std::string error = error_of(R"({"nodes": [
    {"id": 1, "time_us": 1, "resident_bytes": 0, "output_bytes": 0, "pin": 0, "colocate": 1},
    {"id": 2, "time_us": 1, "resident_bytes": 0, "output_bytes": 0, "pin": 1, "colocate": 1}], "edges": []})");
  EXPECT_NE(error.find("g.json:3: node 2: pin is 1"), std::string::npos) << error;
}

TEST(ReadTaskGraph, MicrosoftsJson) {
  const std::string text = R"({"maxSizePerFPGA": 1e9, "maxFPGAs": 6, "maxCPUs": 1, "nodes": [
    {"name": "a", "id": 4, "supportedOnFpga": 1, "cpuLatency": 9, "fpgaLatency": 1.25, "isBackwardNode": 0, "colorClass": 2, "size": 10.5, "layerId": [1, {"x": 2}]},
    {"name": "b", "id": 2, "supportedOnFpga": true, "cpuLatency": 9, "fpgaLatency": 0.5, "isBackwardNode": false, "colorClass": 2, "size": 4.0}],
    "edges": [{"sourceId": 4, "destId": 2, "cost": 0.003, "size": 0.125}]})";
  const TaskGraph graph = parse_task_graph_json(text, "m.json", {.color_classes = true});
  EXPECT_EQ(graph.time(0), 1'250'000);
  EXPECT_EQ(graph.resident_bytes(0), 11);
  EXPECT_EQ(graph.bytes(0), 0) << "the size of an edge is no memory";
  ASSERT_TRUE(graph.has_transfer_times());
  EXPECT_EQ(graph.transfer_time(0), 3000);
  EXPECT_EQ(graph.group_count(), 1);
  EXPECT_EQ(parse_task_graph_json(text, "m.json").group_count(), 0);
}

TEST(ReadTaskGraph, WritesWhatItReads) {
  testing::Shape shape;
  shape.nodes = 40, shape.groups = 10, shape.pins = 10;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const TaskGraph graph = testing::random_graph(seed, shape);
    const std::string text = task_graph_json(graph);
    EXPECT_EQ(task_graph_json(parse_task_graph_json(text, "again")), text);
  }
}

class PardnnFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("convoy_pardnn_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    write("graph.dot", "digraph{\n\"src\"->\"a\"\n\"a\"->\"b\"\n\"a\" -> \"c\";\n\"b\"->\"snk\"\n}\n");
    write("durations.txt", "a::5\nelsewhere::7\n");
    write("tensor_bytes.txt", "\"a\":: 4096\n\"b\":: 0\n");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void write(const char* file, const std::string& text) { std::ofstream(folder_ / file) << text; }
  std::string error() {
    try {
      read_task_graph(folder_);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "no error";
  }
  std::filesystem::path folder_;
};

TEST_F(PardnnFolder, DropsTheTerminalsAndFillsDefaults) {
  const TaskGraph graph = read_task_graph(folder_);
  ASSERT_EQ(graph.node_count(), 3);
  ASSERT_EQ(graph.edge_count(), 2);
  EXPECT_EQ(graph.time(0), 5000);
  EXPECT_EQ(graph.time(1), 1000) << "a node without a duration takes a microsecond";
  EXPECT_EQ(graph.bytes(0), 4096);
}

TEST_F(PardnnFolder, ErrorsNameFileAndLine) {
  write("durations.txt", "a::5\nb::-1\n");
  EXPECT_NE(error().find("durations.txt:2: node \"b\": duration is \"-1\""), std::string::npos) << error();
  write("durations.txt", "a::5\na::6\n");
  EXPECT_NE(error().find("durations.txt:2: node \"a\": duration is given twice"), std::string::npos)
      << error();
  write("durations.txt", "");
  write("graph.dot", "digraph{\n\"a\"->\"b\"\n\"b\"->\"a\"\n}\n");
  EXPECT_NE(error().find("cycle: "), std::string::npos) << error();
  write("graph.dot", "digraph{\n\"x\"->\"a\"\n\"a\"->\"a\"\n}\n");
  EXPECT_NE(error().find("graph.dot:3: edge 1 \"a\" -> 1 \"a\": a node that waits for itself"),
            std::string::npos)
      << error();
  write("graph.dot", "digraph{\n\"a\"->\"b\"\n\"a\"->\"b\"\n}\n");
  EXPECT_NE(error().find("graph.dot:3: edge 0 \"a\" -> 1 \"b\": given twice"), std::string::npos) << error();
  write("graph.dot", "digraph{\n\"a\"->\"b\"\n");
  EXPECT_NE(error().find("closing brace"), std::string::npos) << error();
  write("graph.dot", "digraph{\n\"a\"=>\"b\"\n}\n");
  EXPECT_NE(error().find("graph.dot:2:"), std::string::npos) << error();
  std::filesystem::remove(folder_ / "tensor_bytes.txt");
  EXPECT_NE(error().find("has neither tensor_bytes.txt nor tensors_sz_32_low.txt"), std::string::npos)
      << error();
}

// Tests the DOT language: attributes, chains, several edges in a line, comments, and arrows within
// names.
TEST_F(PardnnFolder, ReadsDotAsItIs) {
  write("durations.txt", "a::5\nb->c::6\n");
  write("graph.dot",
        "/* a step */ strict digraph g {\n rankdir=LR; node [shape=box]\n a -> \"b->c\" -> d [label=\"x;y -> "
        "z\", w=3];"
        " a->e; e->d // last\n lonely;\n}\n");
  const TaskGraph graph = read_pardnn_folder(folder_);
  ASSERT_EQ(graph.node_count(), 5);
  EXPECT_EQ(graph.edge_count(), 4);
  EXPECT_EQ(graph.name(1), "b->c");
  EXPECT_EQ(graph.time(1), 6000);
  EXPECT_EQ(graph.target(graph.out_begin(1)), 2);
  EXPECT_EQ(graph.name(4), "lonely");
  for (const char* wrong :
       {"graph { a -- b }", "digraph { a -- b }", "digraph { subgraph x { a } }", "digraph { a b }",
        "digraph { a -> }", "digraph { a -> b [label=\"x\" }", "digraph { \"a }", "digraph { a } b"}) {
    write("graph.dot", wrong);
    EXPECT_NE(error().find("graph.dot:1: "), std::string::npos) << wrong << ": " << error();
  }
}

TEST_F(PardnnFolder, SkipsPorts) {
  write("graph.dot", "digraph { a:p1 -> b:p2:n -> \"c:d\":\"p\":s; a:\"p\" -> \"c:d\"; b:p3 }\n");
  const TaskGraph graph = read_pardnn_folder(folder_);
  ASSERT_EQ(graph.node_count(), 3);
  EXPECT_EQ(graph.edge_count(), 3);
  EXPECT_EQ(graph.name(0), "a");
  EXPECT_EQ(graph.name(1), "b");
  EXPECT_EQ(graph.name(2), "c:d");
  EXPECT_EQ(graph.time(0), 5000);
  for (const char* wrong : {"digraph { :p -> b }", "digraph { a: -> b }", "digraph { a -> b: }"}) {
    write("graph.dot", wrong);
    EXPECT_NE(error().find("graph.dot:1: expected a "), std::string::npos) << wrong << ": " << error();
  }
}

TEST_F(PardnnFolder, TakesThePublicProgramsNames) {
  for (const char* name : {"graph.dot", "durations.txt", "tensor_bytes.txt"})
    std::filesystem::remove(folder_ / name);
  write("crn_src_sink_low.dot", "digraph{\n\"src\"->\"v\"\n\"v\"->\"a\"\n\"a\"->\"snk\"\n}\n");
  write("nodes_average_durations_fixed.txt", "v::3\na::5\n");
  write("tensors_sz_32_low.txt", "\"v\":: 99.5\na::10\n");
  write("memory.txt", "v::400\na::20\n");
  write("var_nodes.txt", "v\n");
  const TaskGraph graph = read_pardnn_folder(folder_);
  ASSERT_EQ(graph.node_count(), 2);
  EXPECT_EQ(graph.bytes(0), 100);
  EXPECT_EQ(graph.resident_bytes(0), 400);
  EXPECT_EQ(graph.output_bytes(1), 20);
}

TEST(ReadTaskGraph, NamesWhatIsNoNumberAndWhatIsTooLarge) {
  const auto error_of = [](const std::string& node) -> std::string {
    try {
      parse_task_graph_json("{\"nodes\": [" + node + "], \"edges\": []}", "f");
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(error_of(R"({"id": 0, "time_us": true, "resident_bytes": 1, "output_bytes": 1})"),
            "f:1: node 0: time_us is true, expected a number");
  EXPECT_EQ(error_of(R"({"id": 0, "time_us": {}, "resident_bytes": 1, "output_bytes": 1})"),
            "f:1: node 0: time_us is empty, expected a time for each kind");
  EXPECT_EQ(error_of(R"({"id": 0, "time_us": {"a": "x"}, "resident_bytes": 1, "output_bytes": 1})"),
            "f:1: node 0: time_us of kind a is text, expected a number");
  EXPECT_EQ(error_of(R"({"id": 0, "time_us": {"a": -1}, "resident_bytes": 1, "output_bytes": 1})"),
            "f:1: node 0: time_us of kind a is -1, expected 0 or more and below 104 days");
  EXPECT_EQ(error_of(R"({"id": 0, "time_us": {"a": 1, "a": 2}, "resident_bytes": 1, "output_bytes": 1})"),
            "f:1: node 0: time of kind a is given twice");
  EXPECT_EQ(error_of(R"({"id": 0, "time_us": {"a": {}}, "resident_bytes": 1, "output_bytes": 1})"),
            "f:1: node 0: a is nested, expected a plain value");
  EXPECT_EQ(error_of(R"({"id": 0, "time_us": 1e400, "resident_bytes": 1, "output_bytes": 1})"),
            "f:1: time_us is 1e400, too large");
  const std::string lengthy(5000, 'x');
  for (const std::string& node :
       {"{\"id\": 0, \"" + lengthy + "\": 1, \"time_us\": 1}", "{\"id\": 0, \"time_us\": " + lengthy + "}",
        "{\"id\": 0, \"time_us\": 1" + std::string(4000, '0') + "}", "{\"id\": \"" + lengthy + "\"}"})
    EXPECT_LT(error_of(node).size(), 250u) << error_of(node);
}

// Our format has no field for the time of a transfer.
TEST(ReadTaskGraph, RefusesToWriteTransferTimes) {
  const TaskGraph graph = parse_task_graph_json(
      R"({"nodes": [{"id": 1, "fpgaLatency": 1, "size": 1}, {"id": 2, "fpgaLatency": 1, "size": 1}],
          "edges": [{"sourceId": 1, "destId": 2, "cost": 3}]})",
      "f");
  EXPECT_THROW(task_graph_json(graph), std::runtime_error);
}

TEST(ReadTaskGraph, KeepsMicrosoftsLimits) {
  const char* rest =
      R"("nodes": [{"id": 1, "fpgaLatency": 1, "size": 1, "supportedOnFpga": true}], "edges": []})";
  const TaskGraph graph =
      parse_task_graph_json(std::string(R"({"maxSizePerFPGA": 5e3, "maxFPGAs": 6, )") + rest, "f");
  EXPECT_EQ(graph.device_memory(), 5000);
  EXPECT_EQ(graph.device_count(), 6);
  EXPECT_THROW(parse_task_graph_json(std::string(R"({"maxFPGAs": 2.5, )") + rest, "f"), std::runtime_error);
  EXPECT_THROW(parse_task_graph_json(std::string(R"({"maxSizePerFPGA": -1, )") + rest, "f"),
               std::runtime_error);
}

// Changes random bytes in valid files. The reader must give an error or a graph, and never crash.
TEST(ReadTaskGraph, SurvivesDamagedFiles) {
  const std::string ours =
      task_graph_json(testing::random_graph(3, {.nodes = 12, .edge_share = 0.3, .groups = 3, .pins = 3}));
  const std::string microsoft =
      R"({"maxFPGAs": 6, "nodes": [{"name": "a", "id": 4, "fpgaLatency": 1.25, "colorClass": 2, "size": 10},
    {"id": 2, "fpgaLatency": 0.5, "size": 4.0}], "edges": [{"sourceId": 4, "destId": 2, "cost": 0.003}]})";
  Random random(1);
  const std::string pieces = "{}[]\",:-0123456789.eE\\ntrue null\x01\xff";
  int errors = 0;
  for (int round = 0; round < 6000; ++round) {
    std::string text = round % 2 == 0 ? ours : microsoft;
    const std::int64_t changes = 1 + random.below(4);
    for (std::int64_t i = 0; i < changes && !text.empty(); ++i) {
      const auto at = static_cast<std::size_t>(random.below(std::ssize(text)));
      switch (random.below(4)) {
        case 0:
          text[at] = pieces[static_cast<std::size_t>(random.below(std::ssize(pieces)))];
          break;
        case 1:
          text.erase(at, static_cast<std::size_t>(random.below(20)));
          break;
        case 2:
          text.insert(at, text.substr(static_cast<std::size_t>(random.below(std::ssize(text))),
                                      static_cast<std::size_t>(random.below(30))));
          break;
        default:
          text.resize(at);
      }
    }
    try {
      parse_task_graph_json(text, "fuzz", {.color_classes = true});
    } catch (const std::runtime_error& error) {
      ++errors;
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
  EXPECT_GT(errors, 3000);
}

TEST(Generators, GiveTheSizeAskedFor) {
  for (const char* family : {"recurrent", "crn", "wide-resnet", "transformer", "e3d", "random", "sparse"}) {
    GeneratorOptions options;
    options.nodes = 11000;
    const TaskGraph graph = generate_task_graph(family, options);
    EXPECT_NEAR(graph.node_count(), 11000, 330) << family;
    EXPECT_GT(graph.critical_path(), 0) << family;
    EXPECT_GT(graph.total_resident_bytes(), 0) << family;
  }
  EXPECT_THROW(generate_task_graph("lstm", {}), std::runtime_error);
}

}  // namespace
}  // namespace convoy::partition
